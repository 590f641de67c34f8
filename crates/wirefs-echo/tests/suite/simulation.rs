//! A simulated network that echoes, with a realistic driver.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use wirefs_echo::{
    Cipher, Distance, Echo, EchoBlockId, EchoConfig, EchoKey, EchoOutput, EchoRefusal, HostConfig, HostId,
    Keep, Origin, ReceiveVerdict, Redundancy, SendRate, Time,
};
use wirefs_lab::LaneProfile;
use wirefs_lab::lane::EmulatedLane;
use wirefs_virtual::Dice;

/// Duration of one driver iteration.
const STEP: Duration = Duration::from_micros(100);
/// Packets that a driver receives at once.
const BATCH: usize = 64;
/// The payload size for Ethernet.
pub(crate) const PACKET_BYTES: usize = 1_472;

pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Profile of a simulated host.
#[derive(Clone, Debug)]
pub(crate) struct HostProfile {
    pub(crate) path: LaneProfile,
    /// Replies per second at most; further requests are dropped, as ICMP rate limits do.
    pub(crate) replies_per_second: Option<u64>,
    pub(crate) config: HostConfig,
}

impl HostProfile {
    /// Returns a host with this RTT and no loss.
    pub(crate) fn at(rtt: Duration) -> HostProfile {
        HostProfile {
            path: LaneProfile { delay: rtt, ..LaneProfile::default() },
            replies_per_second: None,
            config: HostConfig { buffer_packets: 1 << 20, parked_packets: 0, goal_packets: 0, rate: None },
        }
    }

    pub(crate) fn with(mut self, change: impl Fn(&mut LaneProfile)) -> HostProfile {
        change(&mut self.path);
        self
    }
}

/// The path to a host and back, and the receive buffer.
pub(crate) struct SimPath {
    pub(crate) lane: EmulatedLane,
    pub(crate) buffer: VecDeque<(Time, Vec<u8>)>,
    pub(crate) profile: HostProfile,
    tokens: f64,
    filled: Time,
    pub(crate) sent: u64,
    pub(crate) dropped_by_buffer: u64,
    /// The captured packets, if enabled.
    pub(crate) tap: Option<Vec<Vec<u8>>>,
}

impl SimPath {
    /// Loses the packets in flight, and all packets until it is healed.
    pub(crate) fn cut(&mut self) {
        self.lane.cut();
    }

    pub(crate) fn heal(&mut self) {
        self.lane.heal();
    }
}

pub(crate) struct Simulation {
    pub(crate) echo: Echo,
    pub(crate) now: Time,
    pub(crate) paths: Vec<SimPath>,
    pub(crate) lost: BTreeMap<EchoBlockId, Time>,
    pub(crate) recovered: BTreeSet<EchoBlockId>,
    pub(crate) missing: BTreeSet<EchoBlockId>,
    pub(crate) fetched: BTreeMap<EchoBlockId, (Time, Bytes)>,
    /// The overheard blocks.
    pub(crate) passed: Vec<(EchoBlockId, Bytes)>,
    pub(crate) host_events: Vec<EchoOutput>,
    buffer: Vec<u8>,
}

pub(crate) fn config(profiles: &[HostProfile]) -> EchoConfig {
    EchoConfig {
        key: EchoKey([7; 32]),
        origin: Origin(0x0102_0304),
        cipher: Cipher::default(),
        hosts: profiles.iter().map(|profile| profile.config).collect(),
        keep: Keep::Index,
        redundancy: Redundancy::Copies(1),
        rate: SendRate::Fixed(1_000_000),
        packet_bytes: PACKET_BYTES,
        ram_bytes: 0,
    }
}

/// Returns the contents of a block by its number.
pub(crate) fn content(number: u64, bytes: usize) -> Bytes {
    Dice::new(number).bytes(bytes).into()
}

pub(crate) fn id(number: u64) -> EchoBlockId {
    EchoBlockId::from(u128::from(number))
}

impl Simulation {
    pub(crate) fn new(
        profiles: &[HostProfile],
        seed: u64,
        change: impl FnOnce(&mut EchoConfig),
    ) -> Simulation {
        let mut config = config(profiles);
        change(&mut config);
        let paths = profiles.iter().enumerate().map(|(number, profile)| SimPath {
            lane: EmulatedLane::new(profile.path.clone(), seed.wrapping_add(number as u64 * 1_000_003)),
            buffer: VecDeque::new(),
            profile: profile.clone(),
            tokens: 0.0,
            filled: Time::default(),
            sent: 0,
            dropped_by_buffer: 0,
            tap: None,
        });
        Simulation {
            echo: Echo::new(&config).unwrap(),
            now: Time::default(),
            paths: paths.collect(),
            lost: BTreeMap::new(),
            recovered: BTreeSet::new(),
            missing: BTreeSet::new(),
            fetched: BTreeMap::new(),
            passed: Vec::new(),
            host_events: Vec::new(),
            buffer: vec![0; config.packet_bytes],
        }
    }

    /// Adds a host.
    pub(crate) fn add(&mut self, profile: &HostProfile) -> HostId {
        self.paths.push(SimPath {
            lane: EmulatedLane::new(profile.path.clone(), self.paths.len() as u64),
            buffer: VecDeque::new(),
            profile: profile.clone(),
            tokens: 0.0,
            filled: Time::default(),
            sent: 0,
            dropped_by_buffer: 0,
            tap: None,
        });
        self.echo.add_host(profile.config).unwrap()
    }

    /// Creates a simulation and waits until all hosts answer.
    pub(crate) fn answering(
        profiles: &[HostProfile],
        seed: u64,
        change: impl FnOnce(&mut EchoConfig),
    ) -> Simulation {
        let mut sim = Simulation::new(profiles, seed, change);
        let limit = sim.now + Duration::from_secs(300);
        while sim.host_events.len() < profiles.len() {
            sim.run(ms(10));
            assert!(sim.now < limit, "the hosts do not answer");
        }
        sim
    }

    /// Runs for `span`.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        self.run_until(end, |_| false);
    }

    /// Runs until `end`, or until `is_done`.
    pub(crate) fn run_until(&mut self, end: Time, is_done: impl Fn(&Simulation) -> bool) {
        loop {
            self.step();
            if self.now >= end || is_done(self) {
                return;
            }
            let arrival = self.paths.iter().filter_map(|path| path.lane.deadline()).min();
            let next = arrival.map_or(self.echo.deadline(), |arrival| arrival.min(self.echo.deadline()));
            self.now = next.max(self.now + STEP).min(end);
        }
    }

    /// Runs one iteration of the driver.
    pub(crate) fn step(&mut self) {
        self.poll_all(usize::MAX);
    }

    /// Runs with a driver that takes at most `max` packets per host every `step`, and pauses in between.
    pub(crate) fn rest(&mut self, span: Duration, step: Duration, max: usize) {
        let end = self.now + span;
        while self.now < end {
            self.poll_all(max);
            let next = self.now + step;
            while self.now < next {
                self.now = self.now + STEP;
                (0..self.paths.len()).for_each(|number| self.arrive(number));
            }
        }
    }

    fn poll_all(&mut self, max: usize) {
        for number in 0..self.paths.len() {
            self.arrive(number);
            self.receive(number, max);
        }
        self.echo.tick(self.now);
        for number in 0..self.paths.len() {
            let mut buffer = std::mem::take(&mut self.buffer);
            while let Some(written) = self.echo.poll_packet(self.now, HostId(number as u8), &mut buffer) {
                self.send(number, buffer[..written.bytes].to_vec());
            }
            self.buffer = buffer;
        }
        self.collect_outputs();
    }

    fn arrive(&mut self, number: usize) {
        let path = &mut self.paths[number];
        while let Some(packet) = path.lane.poll(self.now) {
            if path.buffer.len() as u64 >= path.profile.config.buffer_packets {
                path.dropped_by_buffer += 1;
            } else {
                path.buffer.push_back((self.now, packet));
            }
        }
    }

    fn receive(&mut self, number: usize, mut left: usize) {
        let host = HostId(number as u8);
        loop {
            let max = self.echo.allowance(self.now, host).min(BATCH).min(left);
            let count = self.paths[number].buffer.len().min(max);
            left -= count;
            for _ in 0..count {
                let (arrived, mut packet) = self.paths[number].buffer.pop_front().unwrap();
                match self.echo.receive(self.now, host, self.now - arrived, &mut packet) {
                    ReceiveVerdict::Resend(_) => self.send(number, packet),
                    ReceiveVerdict::Absorb => {}
                }
            }
            if self.paths[number].buffer.is_empty() {
                self.echo.drained(self.now, host);
            }
            if count == 0 {
                return;
            }
        }
    }

    fn send(&mut self, number: usize, packet: Vec<u8>) {
        let path = &mut self.paths[number];
        path.sent += 1;
        if let Some(tap) = &mut path.tap {
            tap.push(packet.clone());
        }
        if let Some(rate) = path.profile.replies_per_second {
            // A burst of a tenth of a second.
            let earned = (self.now - path.filled).as_secs_f64() * rate as f64;
            path.tokens = (path.tokens + earned).min(rate as f64 / 10.0);
            path.filled = self.now;
            if path.tokens < 1.0 {
                return;
            }
            path.tokens -= 1.0;
        }
        path.lane.push(self.now, packet);
    }

    fn collect_outputs(&mut self) {
        while let Some(output) = self.echo.poll() {
            match output {
                EchoOutput::Fetched { id, block } => drop(self.fetched.insert(id, (self.now, block))),
                EchoOutput::Passed { id, block } => self.passed.push((id, block)),
                EchoOutput::Missing { id } => drop(self.missing.insert(id)),
                EchoOutput::Lost { id } => drop(self.lost.insert(id, self.now)),
                EchoOutput::Recovered { id } => {
                    self.lost.remove(&id);
                    self.recovered.insert(id);
                }
                event @ (EchoOutput::Silent { .. } | EchoOutput::Answers { .. }) => {
                    self.host_events.push(event)
                }
            }
        }
    }

    /// Stores a block by its number, once there is room.
    pub(crate) fn store_block(&mut self, number: u64, bytes: usize) {
        let end = self.now + Duration::from_secs(600);
        loop {
            match self.echo.store_block(self.now, id(number), content(number, bytes), Distance::Any) {
                Ok(()) => return,
                Err(EchoRefusal::Busy | EchoRefusal::NoSpace { may_grow: true }) => self.run(ms(1)),
                Err(refusal) => panic!("block {number}: {refusal:?} of {:?}", self.echo.capacity()),
            }
            assert!(self.now < end, "block {number} is not accepted");
        }
    }

    /// Reads a block. Returns its contents and the time it took; `None` if it is missing.
    pub(crate) fn read(&mut self, number: u64) -> Option<(Bytes, Duration)> {
        let (started, wanted) = (self.now, id(number));
        self.fetched.remove(&wanted);
        self.missing.remove(&wanted);
        self.echo.fetch(self.now, wanted).unwrap();
        let end = self.now + Duration::from_secs(600);
        self.run_until(end, |sim| sim.fetched.contains_key(&wanted) || sim.missing.contains(&wanted));
        let (at, block) = self.fetched.remove(&wanted)?;
        Some((block, at - started))
    }

    /// Reads all blocks with these numbers, and checks them against the stored contents and the reported
    /// losses.
    pub(crate) fn check_all(&mut self, numbers: impl IntoIterator<Item = u64>, bytes: usize) -> usize {
        let mut there = 0;
        let numbers: Vec<u64> = numbers.into_iter().collect();
        self.fetched.clear();
        self.missing.clear();
        for &number in &numbers {
            self.echo.fetch(self.now, id(number)).unwrap();
        }
        let end = self.now + Duration::from_secs(60);
        let count = numbers.len();
        self.run_until(end, |sim| sim.fetched.len() + sim.missing.len() >= count);
        for number in numbers {
            match self.fetched.get(&id(number)) {
                Some((_, block)) => {
                    assert_eq!(*block, content(number, bytes), "block {number}");
                    there += 1;
                }
                None => {
                    assert!(
                        self.missing.contains(&id(number)),
                        "block {number} is neither fetched nor missing"
                    );
                    assert!(
                        self.lost.contains_key(&id(number)),
                        "block {number} is missing and was not reported"
                    );
                }
            }
        }
        there
    }
}
