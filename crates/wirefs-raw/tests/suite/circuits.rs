//! Circuits over virtual cables: two nodes on hosts joined by veth, driven by one thread.

use std::time::{Duration, Instant};

use bytes::Bytes;
use ring::agreement::{EphemeralPrivateKey, X25519};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_circuit::{
    Card, CardAddress, CardId, CircuitClass, CircuitConfig, CircuitId, CircuitNode, CircuitOutput, GroupId,
    HandshakeKey, NetworkPath, PeerTrust, Read, Time,
};
use wirefs_lab::Lab;
use wirefs_raw::{EtherSocket, Frames, HardwareAddress};

use crate::ether::{ETHER_TYPE, cable, open};
use crate::site::ip;

/// An event that takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(30);

struct Site {
    node: CircuitNode,
    cards: Vec<(EtherSocket, Frames, Frames)>,
    outputs: Vec<CircuitOutput>,
}

impl Site {
    fn new(number: u8, sockets: Vec<EtherSocket>) -> Site {
        let card = |socket: &EtherSocket| Card {
            address: CardAddress(socket.address().0),
            packet_bytes: socket.mtu().unwrap(),
        };
        let mut node = CircuitNode::new(CircuitConfig {
            identity: Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap(),
            secret: [number; 32],
            cards: sockets.iter().map(card).collect(),
            trust: PeerTrust::Anyone,
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
        Site { node, cards: cards.collect(), outputs: Vec::new() }
    }

    /// Receives and sends once.
    fn step(&mut self, now: Time) {
        for (number, (socket, arrived, leaving)) in self.cards.iter_mut().enumerate() {
            let card = CardId(number as u8);
            socket.receive(arrived).unwrap();
            arrived.each(|source, payload| self.node.receive(now, card, CardAddress(source.0), payload));
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
        self.outputs.extend(std::iter::from_fn(|| self.node.poll()));
    }

    fn joined(&self) -> Option<GroupId> {
        self.outputs.iter().find_map(|output| match output {
            CircuitOutput::Established { group, .. } => Some(*group),
            _ => None,
        })
    }
}

struct Pair {
    sites: [Site; 2],
    started: Instant,
}

impl Pair {
    fn now(&self) -> Time {
        Time(self.started.elapsed().as_nanos() as u64)
    }

    /// Drives both nodes until `is_over`.
    fn until(&mut self, mut is_over: impl FnMut(&mut [Site; 2]) -> bool) {
        let started = Instant::now();
        while !is_over(&mut self.sites) {
            assert!(
                started.elapsed() < PATIENCE,
                "{:?}",
                self.sites.each_ref().map(|site| site.node.counters())
            );
            let now = self.now();
            self.sites.iter_mut().for_each(|site| site.step(now));
            let due = self.sites.iter().filter_map(|site| site.node.deadline()).min();
            let wait =
                due.map_or(Duration::from_millis(1), |due| due.since(now)).min(Duration::from_millis(1));
            let sockets = self.sites.iter().flat_map(|site| site.cards.iter().map(|(socket, ..)| socket));
            let mut fds: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            poll(&mut fds, Some(&Timespec::try_from(wait).unwrap())).unwrap();
        }
    }

    fn join(mut self) -> (Pair, [GroupId; 2]) {
        let far = self.sites[1].cards.iter().map(|(socket, ..)| socket.address());
        let ways: Vec<NetworkPath> = far
            .enumerate()
            .map(|(card, address)| NetworkPath { card: CardId(card as u8), remote: CardAddress(address.0) })
            .collect();
        let now = self.now();
        self.sites[0].node.dial(now, &ways, None).unwrap();
        self.until(|sites| sites.iter().all(|site| site.joined().is_some()));
        let groups = self.sites.each_ref().map(|site| site.joined().unwrap());
        (self, groups)
    }

    /// Sends `bytes` bytes over a new circuit, and checks them when all were read.
    fn transfer(
        &mut self,
        groups: [GroupId; 2],
        class: CircuitClass,
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
fn circuits_carry_data_over_a_cable_in_frames_of_its_mtu() {
    for mtu in [1_500, 9_000] {
        let lab = Lab::new("circuits").unwrap();
        let (hosts, patch) = cable(&lab, mtu);
        let sites =
            [0, 1].map(|at| Site::new(at as u8 + 1, vec![open(&hosts[at], &patch.device, ETHER_TYPE)]));
        let (mut pair, groups) = Pair { sites, started: Instant::now() }.join();
        pair.transfer(groups, CircuitClass::Request, 100, |_| ());
        pair.transfer(groups, CircuitClass::Bulk, 4 << 20, |_| ());
        let found = pair.sites[0].node.packet_bytes(groups[0]);
        assert_eq!(found.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), [mtu]);
    }
}

#[test]
fn pulled_cable_loses_no_data_of_a_transfer() {
    let lab = Lab::new("cables").unwrap();
    let (hosts, first) = cable(&lab, 1_500);
    let second = lab.patch(&hosts[0], &hosts[1]).unwrap();
    let devices = [first.device, second.device];
    let sites = [0, 1].map(|at| {
        let sockets = devices.iter().map(|device| open(&hosts[at], device, ETHER_TYPE));
        Site::new(at as u8 + 1, sockets.collect())
    });
    let (mut pair, groups) = Pair { sites, started: Instant::now() }.join();
    pair.transfer(groups, CircuitClass::Bulk, 1 << 20, |_| ());
    assert_eq!(pair.sites[0].node.live_paths(groups[0]).len(), 2);
    let mut is_pulled = false;
    pair.transfer(groups, CircuitClass::Bulk, 8 << 20, |read| {
        if read > 1 << 20 && !is_pulled {
            is_pulled = true;
            ip(&hosts[1], &format!("link set {} down", devices[0]));
        }
    });
    assert!(is_pulled);
    pair.until(|[near, _]| near.node.live_paths(groups[0]).len() == 1);
    ip(&hosts[1], &format!("link set {} up", devices[0]));
    pair.until(|[near, _]| near.node.live_paths(groups[0]).len() == 2);
}
