//! Circuits over real cables: two nodes on hosts joined by veth, driven by one thread as a driver would.

use std::time::{Duration, Instant};

use bytes::Bytes;
use ring::agreement::{EphemeralPrivateKey, X25519};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_circuit::{
    Card, CardAddress as Address, CardId, CircuitClass as Class, CircuitConfig as Config, CircuitId,
    CircuitNode as Node, CircuitOutput as Output, GroupId, HandshakeKey, NetworkPath, PeerTrust as Trust,
    Read, Time,
};
use wirefs_lab::Lab;
use wirefs_raw::{EtherSocket, Frames, HardwareAddress};

use crate::ether::{ETHER_TYPE, cable, open};
use crate::site::ip;

/// Whatever waits for this long does not come.
const PATIENCE: Duration = Duration::from_secs(30);

struct Site {
    node: Node,
    cards: Vec<(EtherSocket, Frames, Frames)>,
    told: Vec<Output>,
}

impl Site {
    fn new(number: u8, sockets: Vec<EtherSocket>) -> Site {
        let card = |socket: &EtherSocket| Card {
            address: Address(socket.address().0),
            packet_bytes: socket.mtu().unwrap(),
        };
        let mut node = Node::new(Config {
            identity: Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap(),
            secret: [number; 32],
            cards: sockets.iter().map(card).collect(),
            trust: Trust::Anyone,
        })
        .unwrap();
        for _ in 0..4 {
            let key = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).unwrap();
            node.give_key(HandshakeKey::new(key).unwrap());
        }
        let cards = sockets.into_iter().map(|socket| {
            socket.reserve(8 << 20).unwrap();
            (socket, Frames::new(9_216), Frames::new(9_216))
        });
        Site { node, cards: cards.collect(), told: Vec::new() }
    }

    /// Receives and sends what there is.
    fn turn(&mut self, now: Time) {
        for (number, (socket, arrived, leaving)) in self.cards.iter_mut().enumerate() {
            let card = CardId(number as u8);
            socket.receive(arrived).unwrap();
            arrived.each(|source, payload| self.node.receive(now, card, Address(source.0), payload));
            loop {
                if leaving.is_sent() {
                    leaving.clear();
                }
                while leaving.push(|room| {
                    let packet = self.node.poll_packet(now, card, room)?;
                    Some((HardwareAddress(packet.destination.0), packet.bytes))
                }) {}
                if leaving.is_sent() || socket.send(leaving).blocked.is_some() {
                    break;
                }
            }
        }
        if self.node.deadline().is_some_and(|at| at <= now) {
            self.node.tick(now);
        }
        self.told.extend(std::iter::from_fn(|| self.node.poll()));
    }

    fn joined(&self) -> Option<GroupId> {
        self.told.iter().find_map(|output| match output {
            Output::Established { group, .. } => Some(*group),
            _ => None,
        })
    }
}

struct World {
    sites: [Site; 2],
    started: Instant,
}

impl World {
    fn now(&self) -> Time {
        Time(self.started.elapsed().as_nanos() as u64)
    }

    /// Drives both nodes until `is_over` says so.
    fn until(&mut self, mut is_over: impl FnMut(&mut [Site; 2]) -> bool) {
        let started = Instant::now();
        while !is_over(&mut self.sites) {
            assert!(
                started.elapsed() < PATIENCE,
                "{:?}",
                self.sites.each_ref().map(|site| site.node.counters())
            );
            let now = self.now();
            self.sites.iter_mut().for_each(|site| site.turn(now));
            let due = self.sites.iter().filter_map(|site| site.node.deadline()).min();
            let wait =
                due.map_or(Duration::from_millis(1), |due| due.since(now)).min(Duration::from_millis(1));
            let sockets = self.sites.iter().flat_map(|site| site.cards.iter().map(|(socket, ..)| socket));
            let mut fds: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            poll(&mut fds, Some(&Timespec::try_from(wait).unwrap())).unwrap();
        }
    }

    fn join(mut self) -> (World, [GroupId; 2]) {
        let far = self.sites[1].cards.iter().map(|(socket, ..)| socket.address());
        let ways: Vec<NetworkPath> = far
            .enumerate()
            .map(|(card, address)| NetworkPath { card: CardId(card as u8), remote: Address(address.0) })
            .collect();
        let now = self.now();
        self.sites[0].node.dial(now, &ways, None).unwrap();
        self.until(|sites| sites.iter().all(|site| site.joined().is_some()));
        let groups = self.sites.each_ref().map(|site| site.joined().unwrap());
        (self, groups)
    }

    /// Sends so many bytes over a new circuit; returns when all were read and judged.
    fn transfer(
        &mut self,
        groups: [GroupId; 2],
        class: Class,
        bytes: usize,
        mut meanwhile: impl FnMut(usize),
    ) {
        let circuit = self.sites[0].node.open(groups[0], class).unwrap();
        let far = CircuitId { group: groups[1], number: circuit.number };
        let all: Vec<u8> = (0..bytes).map(|at| ((at * 31) >> 7) as u8).collect();
        let mut rest = Bytes::from(all.clone());
        let mut read = Vec::with_capacity(bytes);
        self.until(|[near, other]| {
            if rest.is_empty() {
                let _ = near.node.finish(circuit);
            } else {
                near.node.write(circuit, &mut rest).unwrap();
            }
            meanwhile(read.len());
            loop {
                match other.node.read(far) {
                    Read::Data(data) => read.extend_from_slice(&data),
                    Read::End => return true,
                    Read::Nothing | Read::Gone => return false,
                }
            }
        });
        assert!(read == all, "{} of {bytes} bytes, or not the same", read.len());
    }
}

#[test]
fn circuits_carry_what_is_written_over_a_cable_in_frames_as_large_as_it_takes() {
    for mtu in [1_500, 9_000] {
        let lab = Lab::new("circuits").unwrap();
        let (hosts, patch) = cable(&lab, mtu);
        let sites =
            [0, 1].map(|at| Site::new(at as u8 + 1, vec![open(&hosts[at], &patch.device, ETHER_TYPE)]));
        let (mut world, groups) = World { sites, started: Instant::now() }.join();
        world.transfer(groups, Class::Request, 100, |_| ());
        world.transfer(groups, Class::Bulk, 4 << 20, |_| ());
        let found = world.sites[0].node.packet_bytes(groups[0]);
        assert_eq!(found.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), [mtu]);
    }
}

#[test]
fn cable_that_is_pulled_in_a_transfer_takes_nothing_with_it() {
    let lab = Lab::new("cables").unwrap();
    let (hosts, first) = cable(&lab, 1_500);
    let second = lab.patch(&hosts[0], &hosts[1]).unwrap();
    let devices = [first.device, second.device];
    let sites = [0, 1].map(|at| {
        let sockets = devices.iter().map(|device| open(&hosts[at], device, ETHER_TYPE));
        Site::new(at as u8 + 1, sockets.collect())
    });
    let (mut world, groups) = World { sites, started: Instant::now() }.join();
    world.transfer(groups, Class::Bulk, 1 << 20, |_| ());
    assert_eq!(world.sites[0].node.live_paths(groups[0]).len(), 2);
    let mut is_pulled = false;
    world.transfer(groups, Class::Bulk, 8 << 20, |read| {
        if read > 1 << 20 && !is_pulled {
            is_pulled = true;
            ip(&hosts[1], &format!("link set {} down", devices[0]));
        }
    });
    assert!(is_pulled);
    world.until(|[near, _]| near.node.live_paths(groups[0]).len() == 1);
    ip(&hosts[1], &format!("link set {} up", devices[0]));
    world.until(|[near, _]| near.node.live_paths(groups[0]).len() == 2);
}
