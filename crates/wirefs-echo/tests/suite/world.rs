//! A network that echoes, as long and as bad as a test wants, and a driver as a real one is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use wirefs_echo::{
    BlockId, Cipher, Config, Distance, Echo, HostConfig, HostId, Keep, Key, Origin, Output, Rate, Redundancy,
    Refusal, Time, Verdict,
};
use wirefs_lab::LaneProfile;
use wirefs_lab::lane::Lane;

/// What a driver needs for a turn.
const TURN: Duration = Duration::from_micros(100);
/// Packets that a driver receives at once.
const BATCH: usize = 64;
/// The packet size of Ethernet.
pub(crate) const PACKET_BYTES: usize = 1_472;

pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// What a test wants of a host.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) way: LaneProfile,
    /// Replies a second at most; the rest is dropped, as rate limits of ICMP do.
    pub(crate) answers_per_second: Option<u64>,
    pub(crate) config: HostConfig,
}

impl Site {
    /// A clean host at this distance, there and back.
    pub(crate) fn at(rtt: Duration) -> Site {
        Site {
            way: LaneProfile { delay: rtt, ..LaneProfile::default() },
            answers_per_second: None,
            config: HostConfig { buffer_packets: 1 << 20, parked_packets: 0, goal_packets: 0, rate: None },
        }
    }

    pub(crate) fn with(mut self, change: impl Fn(&mut LaneProfile)) -> Site {
        change(&mut self.way);
        self
    }
}

/// The way to a host and back, and the receive buffer.
pub(crate) struct Way {
    pub(crate) lane: Lane,
    pub(crate) buffer: VecDeque<(Time, Vec<u8>)>,
    pub(crate) site: Site,
    tokens: f64,
    filled: Time,
    pub(crate) sent: u64,
    pub(crate) dropped_by_buffer: u64,
    /// What passes, for those who listen.
    pub(crate) tap: Option<Vec<Vec<u8>>>,
}

impl Way {
    /// Loses what is under way, and all that is sent until it heals.
    pub(crate) fn cut(&mut self) {
        self.lane.cut();
    }

    pub(crate) fn heal(&mut self) {
        self.lane.heal();
    }
}

pub(crate) struct World {
    pub(crate) echo: Echo,
    pub(crate) now: Time,
    pub(crate) ways: Vec<Way>,
    pub(crate) lost: BTreeMap<BlockId, Time>,
    pub(crate) found: BTreeSet<BlockId>,
    pub(crate) missing: BTreeSet<BlockId>,
    pub(crate) fetched: BTreeMap<BlockId, (Time, Bytes)>,
    /// What was overheard.
    pub(crate) passed: Vec<(BlockId, Bytes)>,
    pub(crate) hosts_told: Vec<Output>,
    buffer: Vec<u8>,
}

pub(crate) fn config(sites: &[Site]) -> Config {
    Config {
        key: Key([7; 32]),
        origin: Origin(0x0102_0304),
        cipher: Cipher::default(),
        hosts: sites.iter().map(|site| site.config).collect(),
        keep: Keep::Index,
        redundancy: Redundancy::Copies(1),
        rate: Rate::Fixed(1_000_000),
        packet_bytes: PACKET_BYTES,
        ram_bytes: 0,
    }
}

/// The contents of a block that a number stands for.
pub(crate) fn content(number: u64, bytes: usize) -> Bytes {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let word = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(word).flatten().take(bytes).collect()
}

pub(crate) fn id(number: u64) -> BlockId {
    BlockId::from(u128::from(number))
}

impl World {
    pub(crate) fn new(sites: &[Site], seed: u64, change: impl FnOnce(&mut Config)) -> World {
        let mut config = config(sites);
        change(&mut config);
        let ways = sites.iter().enumerate().map(|(number, site)| Way {
            lane: Lane::new(site.way.clone(), seed.wrapping_add(number as u64 * 1_000_003)),
            buffer: VecDeque::new(),
            site: site.clone(),
            tokens: 0.0,
            filled: Time::default(),
            sent: 0,
            dropped_by_buffer: 0,
            tap: None,
        });
        World {
            echo: Echo::new(&config).unwrap(),
            now: Time::default(),
            ways: ways.collect(),
            lost: BTreeMap::new(),
            found: BTreeSet::new(),
            missing: BTreeSet::new(),
            fetched: BTreeMap::new(),
            passed: Vec::new(),
            hosts_told: Vec::new(),
            buffer: vec![0; config.packet_bytes],
        }
    }

    /// Adds a host.
    pub(crate) fn add(&mut self, site: &Site) -> HostId {
        self.ways.push(Way {
            lane: Lane::new(site.way.clone(), self.ways.len() as u64),
            buffer: VecDeque::new(),
            site: site.clone(),
            tokens: 0.0,
            filled: Time::default(),
            sent: 0,
            dropped_by_buffer: 0,
            tap: None,
        });
        self.echo.add_host(site.config).unwrap()
    }

    /// The same, after all hosts have answered.
    pub(crate) fn answering(sites: &[Site], seed: u64, change: impl FnOnce(&mut Config)) -> World {
        let mut world = World::new(sites, seed, change);
        let limit = world.now + Duration::from_secs(300);
        while world.hosts_told.len() < sites.len() {
            world.run(ms(10));
            assert!(world.now < limit, "the hosts do not answer");
        }
        world
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        self.run_until(end, |_| false);
    }

    /// Lets time pass until `end`, or until `is_done`.
    pub(crate) fn run_until(&mut self, end: Time, is_done: impl Fn(&World) -> bool) {
        loop {
            self.turn();
            if self.now >= end || is_done(self) {
                return;
            }
            let arrival = self.ways.iter().filter_map(|way| way.lane.deadline()).min();
            let next = arrival.map_or(self.echo.deadline(), |arrival| arrival.min(self.echo.deadline()));
            self.now = next.max(self.now + TURN).min(end);
        }
    }

    /// What a driver does once.
    pub(crate) fn turn(&mut self) {
        self.take(usize::MAX);
    }

    /// Lets time pass with a driver that lets packets wait in the receive buffer: it takes so many of a host each time, and does
    /// nothing in between.
    pub(crate) fn rest(&mut self, span: Duration, step: Duration, most: usize) {
        let end = self.now + span;
        while self.now < end {
            self.take(most);
            let next = self.now + step;
            while self.now < next {
                self.now = self.now + TURN;
                (0..self.ways.len()).for_each(|number| self.arrive(number));
            }
        }
    }

    fn take(&mut self, most: usize) {
        for number in 0..self.ways.len() {
            self.arrive(number);
            self.receive(number, most);
        }
        self.echo.tick(self.now);
        for number in 0..self.ways.len() {
            let mut buffer = std::mem::take(&mut self.buffer);
            while let Some(written) = self.echo.poll_packet(self.now, HostId(number as u8), &mut buffer) {
                self.send(number, buffer[..written.bytes].to_vec());
            }
            self.buffer = buffer;
        }
        self.hear();
    }

    fn arrive(&mut self, number: usize) {
        let way = &mut self.ways[number];
        while let Some(packet) = way.lane.poll(self.now) {
            if way.buffer.len() as u64 >= way.site.config.buffer_packets {
                way.dropped_by_buffer += 1;
            } else {
                way.buffer.push_back((self.now, packet));
            }
        }
    }

    fn receive(&mut self, number: usize, mut left: usize) {
        let host = HostId(number as u8);
        loop {
            let most = self.echo.allowance(self.now, host).min(BATCH).min(left);
            let count = self.ways[number].buffer.len().min(most);
            left -= count;
            for _ in 0..count {
                let (arrived, mut packet) = self.ways[number].buffer.pop_front().unwrap();
                match self.echo.receive(self.now, host, self.now - arrived, &mut packet) {
                    Verdict::Resend(_) => self.send(number, packet),
                    Verdict::Absorb => {}
                }
            }
            if self.ways[number].buffer.is_empty() {
                self.echo.drained(self.now, host);
            }
            if count == 0 {
                return;
            }
        }
    }

    fn send(&mut self, number: usize, packet: Vec<u8>) {
        let way = &mut self.ways[number];
        way.sent += 1;
        if let Some(tap) = &mut way.tap {
            tap.push(packet.clone());
        }
        if let Some(rate) = way.site.answers_per_second {
            // As many at once as in a tenth of a second.
            let earned = (self.now - way.filled).as_secs_f64() * rate as f64;
            way.tokens = (way.tokens + earned).min(rate as f64 / 10.0);
            way.filled = self.now;
            if way.tokens < 1.0 {
                return;
            }
            way.tokens -= 1.0;
        }
        way.lane.push(self.now, packet);
    }

    fn hear(&mut self) {
        while let Some(output) = self.echo.poll() {
            match output {
                Output::Fetched { id, block } => drop(self.fetched.insert(id, (self.now, block))),
                Output::Passed { id, block } => self.passed.push((id, block)),
                Output::Missing { id } => drop(self.missing.insert(id)),
                Output::Lost { id } => drop(self.lost.insert(id, self.now)),
                Output::Found { id } => {
                    self.lost.remove(&id);
                    self.found.insert(id);
                }
                told @ (Output::Silent { .. } | Output::Answers { .. }) => self.hosts_told.push(told),
            }
        }
    }

    /// Keeps a block of this number, as soon as it can be.
    pub(crate) fn keep(&mut self, number: u64, bytes: usize) {
        let end = self.now + Duration::from_secs(600);
        loop {
            match self.echo.keep(self.now, id(number), content(number, bytes), Distance::Any) {
                Ok(()) => return,
                Err(Refusal::Busy | Refusal::NoSpace { may_grow: true }) => self.run(ms(1)),
                Err(refusal) => panic!("block {number}: {refusal:?} of {:?}", self.echo.capacity()),
            }
            assert!(self.now < end, "block {number} is not taken");
        }
    }

    /// Reads a block: its contents and how long it took; none when it is missing.
    pub(crate) fn read(&mut self, number: u64) -> Option<(Bytes, Duration)> {
        let (asked, wanted) = (self.now, id(number));
        self.fetched.remove(&wanted);
        self.missing.remove(&wanted);
        self.echo.fetch(self.now, wanted).unwrap();
        let end = self.now + Duration::from_secs(600);
        self.run_until(end, |world| world.fetched.contains_key(&wanted) || world.missing.contains(&wanted));
        let (at, block) = self.fetched.remove(&wanted)?;
        Some((block, at - asked))
    }

    /// Reads all blocks with these numbers, and checks each against what was kept and what was reported.
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
        self.run_until(end, |world| world.fetched.len() + world.missing.len() >= count);
        for number in numbers {
            match self.fetched.get(&id(number)) {
                Some((_, block)) => {
                    assert_eq!(*block, content(number, bytes), "block {number}");
                    there += 1;
                }
                None => {
                    assert!(
                        self.missing.contains(&id(number)),
                        "block {number} is neither there nor missing"
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
