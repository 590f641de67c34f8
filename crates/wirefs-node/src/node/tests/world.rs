//! A network that loses, doubles, delays, reorders and cuts; machines that are killed, come back, or do not run.

use crate::chance::Chance;
use crate::{Config, Destination, Input, Liveness, Name, Node, NodeKey, Output, Pace, Signer, Trust};
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;
use wirefs_op::Time;

/// The key of a number.
pub(crate) fn signer(number: u8) -> (NodeKey, Signer) {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap();
    let key = NodeKey(pair.public_key().as_ref().try_into().unwrap());
    (key, Signer::new(move |message| pair.sign(message).as_ref().try_into().ok()))
}

pub(crate) fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 6440))
}

/// What the network does to packets, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) loss: usize,
    pub(crate) doubled: usize,
    pub(crate) overtaken: usize,
}

pub(crate) const FINE: Weather = Weather { loss: 0, doubled: 0, overtaken: 0 };
pub(crate) const STORM: Weather = Weather { loss: 10, doubled: 5, overtaken: 10 };

/// How a node is made, for a number and a start.
pub(crate) type Maker = fn(u8, u64) -> Config;

/// The usual node: `linus1` and so on.
pub(crate) fn usual(number: u8, born: u64) -> Config {
    let (key, signer) = signer(number);
    Config {
        key,
        signer,
        name: Name::new(&format!("linus{number}")).unwrap(),
        born,
        port: 6440,
        addresses: vec![address(number).ip()],
        exports: Vec::new(),
        cards: Vec::new(),
        peers: Vec::new(),
        trust: Trust::Anyone,
        pace: Pace::default(),
        seed: born ^ u64::from(number),
    }
}

/// What a node said that the test looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Dead { by: u8, of: u8 },
    Suspect { by: u8, of: u8 },
    NameTaken { by: u8 },
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) nodes: BTreeMap<u8, Node>,
    pub(crate) weather: Weather,
    /// Pairs that hear nothing of each other.
    pub(crate) cuts: BTreeSet<(u8, u8)>,
    pub(crate) said: Vec<Said>,
    /// Else everything that is not said to one is lost.
    pub(crate) has_segment: bool,
    /// Every packet that was sent, when the test wants them.
    pub(crate) recorded: Option<Vec<(u8, Vec<u8>)>>,
    /// Machines that do not run until then.
    stalled: BTreeMap<u8, Time>,
    on_their_way: BTreeMap<(Time, u64), (u8, u8, Vec<u8>)>,
    count: u64,
    chance: Chance,
    maker: Maker,
}

impl World {
    pub(crate) fn new(seed: u64, weather: Weather, maker: Maker) -> World {
        World {
            now: Time(1_000_000),
            nodes: BTreeMap::new(),
            weather,
            cuts: BTreeSet::new(),
            said: Vec::new(),
            has_segment: true,
            recorded: None,
            stalled: BTreeMap::new(),
            on_their_way: BTreeMap::new(),
            count: 0,
            chance: Chance(seed),
            maker,
        }
    }

    pub(crate) fn with(count: u8, seed: u64, weather: Weather) -> World {
        let mut world = World::new(seed, weather, usual);
        (1..=count).for_each(|number| world.start(number));
        world
    }

    pub(crate) fn chance(&mut self, bound: usize) -> usize {
        self.chance.below(bound)
    }

    /// Starts a machine, or starts it again.
    pub(crate) fn start(&mut self, number: u8) {
        let config = (self.maker)(number, 1_000 + self.now.0 / 1_000_000);
        self.nodes.insert(number, Node::new(config).unwrap());
        self.drive(number, Input::Tick);
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self, number: u8) {
        self.nodes.remove(&number);
    }

    /// Ends it with a word.
    pub(crate) fn leave(&mut self, number: u8) {
        self.drive(number, Input::Leave);
        self.nodes.remove(&number);
    }

    /// It does not run for a while; what comes meanwhile waits.
    pub(crate) fn stall(&mut self, number: u8, span: Duration) {
        self.stalled.insert(number, self.now + span);
    }

    pub(crate) fn drive(&mut self, number: u8, input: Input<'_>) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&number) else { return };
        node.handle(now, input);
        let outputs: Vec<Output> = std::iter::from_fn(|| node.poll()).collect();
        for output in outputs {
            match output {
                Output::Send { to: Destination::Segment, packet } => {
                    let is_other = |other: &u8| self.has_segment && *other != number;
                    let others: Vec<u8> = self.nodes.keys().copied().filter(is_other).collect();
                    others.into_iter().for_each(|other| self.carry(number, other, packet.clone()));
                }
                Output::Send { to: Destination::Address(to), packet } => {
                    let other = match to.ip() {
                        std::net::IpAddr::V4(ip) => ip.octets()[3],
                        std::net::IpAddr::V6(_) => 0,
                    };
                    self.carry(number, other, packet);
                }
                Output::Changed { key, state } => self.note(number, key, state),
                Output::NameTaken { .. } => self.said.push(Said::NameTaken { by: number }),
            }
        }
    }

    fn note(&mut self, by: u8, key: NodeKey, state: Liveness) {
        let of = (1..=200).find(|number| signer(*number).0 == key).unwrap();
        match state {
            Liveness::Dead => self.said.push(Said::Dead { by, of }),
            Liveness::Suspect => self.said.push(Said::Suspect { by, of }),
            Liveness::Alive | Liveness::Left => {}
        }
    }

    fn carry(&mut self, from: u8, to: u8, packet: Vec<u8>) {
        if let Some(recorded) = &mut self.recorded {
            recorded.push((from, packet.clone()));
        }
        let is_cut = self.cuts.contains(&(from, to)) || self.cuts.contains(&(to, from));
        if is_cut || self.chance.below(100) < self.weather.loss {
            return;
        }
        let copies = if self.chance.below(100) < self.weather.doubled { 2 } else { 1 };
        for _ in 0..copies {
            let late = if self.chance.below(100) < self.weather.overtaken { 40_000 } else { 500 };
            let delay = Duration::from_micros(100 + self.chance.below(late) as u64);
            self.count += 1;
            self.on_their_way.insert((self.now + delay, self.count), (from, to, packet.clone()));
        }
    }

    /// Lets so much time pass.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let packet = self.on_their_way.keys().next().map(|(at, _)| *at);
            let wakes = self.nodes.iter().filter_map(|(number, node)| {
                let due = node.deadline()?;
                Some((due.max(self.stalled.get(number).copied().unwrap_or_default()), *number))
            });
            let wake = wakes.min();
            let next = packet.into_iter().chain(wake.map(|(at, _)| at)).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            match packet.filter(|at| *at <= next) {
                Some(_) => self.deliver(),
                None => wake.into_iter().for_each(|(_, number)| self.drive(number, Input::Tick)),
            }
        }
        self.now = end;
    }

    fn deliver(&mut self) {
        let Some(((_, count), (from, to, packet))) = self.on_their_way.pop_first() else { return };
        match self.stalled.get(&to).filter(|until| **until > self.now) {
            Some(until) => {
                self.on_their_way.insert((*until, count), (from, to, packet));
            }
            None => self.drive(to, Input::Packet { from: address(from), bytes: &packet }),
        }
    }

    /// Each machine that runs knows that just these run.
    #[track_caller]
    pub(crate) fn assert_right(&self, context: &str) {
        let up: BTreeSet<NodeKey> = self.nodes.keys().map(|number| signer(*number).0).collect();
        for (number, node) in &self.nodes {
            let seen = node.nodes().filter(|view| view.state.is_up()).map(|view| view.record.key);
            assert_eq!(seen.collect::<BTreeSet<_>>(), up, "the table of {number}, {context}");
        }
    }
}
