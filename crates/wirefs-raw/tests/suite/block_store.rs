//! The echo store over real sockets: blocks circulate between hosts and are read.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use wirefs_echo::{
    Cipher, Distance, Echo, EchoBlockId, EchoConfig, EchoKey, EchoOutput, EchoRefusal, HostConfig, HostId,
    Keep, Origin, ReceiveVerdict, Redundancy, SendRate, Time,
};
use wirefs_lab::{Lab, LinkProfile};
use wirefs_raw::{EchoSequence, EchoSocket, PacketBatch};

use crate::site::{IDENT, LOOPBACKS, on_a_host, open};

/// Limit for operations that normally take a moment.
const PATIENCE: Duration = Duration::from_secs(60);

struct StoreDriver {
    echo: Echo,
    sockets: Vec<EchoSocket>,
    batch: PacketBatch,
    begun: Instant,
    outputs: Vec<EchoOutput>,
}

impl StoreDriver {
    fn new(
        hosts: &[IpAddr],
        packet_bytes: usize,
        parked_packets: u64,
        change: impl FnOnce(&mut EchoConfig),
    ) -> StoreDriver {
        let sockets: Vec<EchoSocket> = hosts.iter().map(|&host| open(host, IDENT)).collect();
        let host = |socket: &EchoSocket| {
            socket.enable_timestamps().unwrap();
            let buffer_packets = socket.reserve(4_000, packet_bytes).unwrap() as u64;
            HostConfig { buffer_packets, parked_packets, goal_packets: 0, rate: None }
        };
        let mut config = EchoConfig {
            key: EchoKey([7; 32]),
            origin: Origin(1),
            cipher: Cipher::default(),
            hosts: sockets.iter().map(host).collect(),
            keep: Keep::Index,
            redundancy: Redundancy::Copies(1),
            rate: SendRate::Fixed(100_000),
            packet_bytes,
            ram_bytes: 0,
        };
        change(&mut config);
        let echo = Echo::new(&config).unwrap();
        StoreDriver {
            echo,
            sockets,
            batch: PacketBatch::new(packet_bytes),
            begun: Instant::now(),
            outputs: Vec::new(),
        }
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap())
    }

    fn poll_once(&mut self) {
        for number in 0..self.sockets.len() {
            let host = HostId(number as u8);
            let max = self.echo.allowance(self.now(), host);
            let arrivals = self.sockets[number].receive(&mut self.batch, max).unwrap();
            let now = self.now();
            let echo = &mut self.echo;
            self.batch.exchange(|packet, waited| match echo.receive(now, host, waited, packet) {
                ReceiveVerdict::Resend(number) => Some(EchoSequence(number)),
                ReceiveVerdict::Absorb => None,
            });
            self.send(number);
            if arrivals.is_drained && max > 0 {
                self.echo.drained(now, host);
            }
        }
        self.echo.tick(self.now());
        for number in 0..self.sockets.len() {
            let (now, host, echo) = (self.now(), HostId(number as u8), &mut self.echo);
            self.batch.clear();
            while self.batch.push(|room| {
                echo.poll_packet(now, host, room).map(|written| (written.bytes, EchoSequence(written.number)))
            }) {}
            self.send(number);
        }
        self.outputs.extend(std::iter::from_fn(|| self.echo.poll()));
    }

    fn send(&mut self, number: usize) {
        while !self.batch.is_sent() {
            assert_eq!(self.sockets[number].send(&mut self.batch).unwrap().too_large, 0);
        }
    }

    fn until(&mut self, is_done: impl Fn(&StoreDriver) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_done(self) {
            assert!(Instant::now() < end, "it takes too long: {:?}", self.echo.counters());
            self.poll_once();
        }
    }

    fn store_block(&mut self, id: u32, bytes: usize) {
        loop {
            match self.echo.store_block(self.now(), block_id(id), content(id, bytes).into(), Distance::Any) {
                Ok(()) => return,
                Err(EchoRefusal::Busy | EchoRefusal::NoSpace { may_grow: true }) => self.poll_once(),
                Err(refusal) => panic!("{refusal:?}: {:?}", self.echo.capacity()),
            }
        }
    }

    fn read(&mut self, id: u32) -> Vec<u8> {
        self.echo.fetch(self.now(), block_id(id)).unwrap();
        let is_it = |output: &EchoOutput| matches!(output, EchoOutput::Fetched { id: got, .. } if *got == block_id(id));
        self.until(|driver| driver.outputs.iter().any(is_it));
        let place = self.outputs.iter().position(is_it).unwrap();
        match self.outputs.swap_remove(place) {
            EchoOutput::Fetched { block, .. } => block.to_vec(),
            other => panic!("{other:?}"),
        }
    }
}

fn block_id(id: u32) -> EchoBlockId {
    EchoBlockId::from(u128::from(id))
}

fn content(id: u32, bytes: usize) -> Vec<u8> {
    id.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

#[test]
fn blocks_circulate_on_loopback_in_both_protocols_and_are_read_back() {
    on_a_host("store", || {
        for keep in [Keep::Index, Keep::Root { window_packets: 4_096 }] {
            let mut driver = StoreDriver::new(&LOOPBACKS, 1_452, 600, |config| {
                config.keep = keep;
                config.redundancy = Redundancy::Copies(2);
            });
            let bytes = driver.echo.block_bytes_max();
            (0..500).for_each(|id| driver.store_block(id, bytes - id as usize));
            driver.until(|driver| driver.echo.counters().circulated > 20_000);
            for id in (0..500).step_by(17) {
                assert_eq!(driver.read(id), content(id, bytes - id as usize));
            }
            let counters = driver.echo.counters();
            assert_eq!(counters.refused, Default::default(), "{counters:?}");
            assert!(!driver.outputs.iter().any(|output| matches!(output, EchoOutput::Lost { .. })));
            for socket in &driver.sockets {
                assert_eq!(socket.buffer_usage().unwrap().dropped, 0);
            }
        }
    });
}

#[test]
fn blocks_of_64_kilobytes_circulate_on_loopback() {
    on_a_host("jumbo", || {
        let mut driver = StoreDriver::new(&LOOPBACKS[..1], 65_507, 50, |_| {});
        let bytes = driver.echo.block_bytes_max();
        assert_eq!(bytes, 65_507 - 56);
        (0..40).for_each(|id| driver.store_block(id, bytes));
        driver.until(|driver| driver.echo.counters().circulated > 2_000);
        (0..40).for_each(|id| assert_eq!(driver.read(id), content(id, bytes)));
        assert_eq!(driver.sockets[0].buffer_usage().unwrap().dropped, 0);
    });
}

#[test]
fn blocks_survive_losses_on_a_line_of_forty_milliseconds() {
    let lab = Lab::new("line").unwrap();
    let [near, far] = ["near", "far"].map(|name| lab.host(name).unwrap());
    let profile = LinkProfile::rtt(Duration::from_millis(40)).with(|lane| {
        lane.loss = wirefs_lab::Probability::new(0.002).unwrap();
        lane.duplicate = wirefs_lab::Probability::percent(1);
        lane.corrupt = wirefs_lab::Probability::new(0.001).unwrap();
    });
    let link = lab.link(&near, &far, profile).unwrap();
    let live = || {
        let mut driver = StoreDriver::new(&[link.address_b().into()], 1_472, 0, |config| {
            config.redundancy = Redundancy::Copies(4);
            config.rate = SendRate::Fixed(5_000);
        });
        driver.until(|driver| driver.echo.capacity().packets_max > 0);
        (0..40).for_each(|id| driver.store_block(id, 1_000));
        driver.until(|driver| driver.echo.counters().circulated > 15_000);
        (0..40).for_each(|id| assert_eq!(driver.read(id), content(id, 1_000)));
        let counters = driver.echo.counters();
        assert!(counters.rebuilt > 0 && counters.refused.replayed > 0, "{counters:?}");
        assert!(!driver.outputs.iter().any(|output| matches!(output, EchoOutput::Lost { .. })));
        let status = driver.echo.status(HostId(0)).unwrap();
        assert!(status.rtt_min.unwrap() >= Duration::from_millis(40), "{status:?}");
    };
    near.run(live).unwrap();
}
