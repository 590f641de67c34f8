//! A simulated network that loses, duplicates, delays, reorders and partitions; machines that crash, restart or stall.

use crate::{
    Destination, Liveness, Node, NodeConfig, NodeInput, NodeKey, NodeName, NodeOutput, NodeTrust,
    ProbeTiming, Signer,
};
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;
use wirefs_op::Time;
use wirefs_virtual::{Dice, EventQueue, PARTS, PacketFaults, PacketNet};

/// Returns the key pair of a number.
pub(crate) fn signer(number: u8) -> (NodeKey, Signer) {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[number; 32]).unwrap();
    let key = NodeKey(pair.public_key().as_ref().try_into().unwrap());
    (key, Signer::new(move |message| pair.sign(message).as_ref().try_into().ok()))
}

pub(crate) fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 6440))
}

pub(crate) const NO_FAULTS: PacketFaults =
    PacketFaults { loss: 0, duplication: 0, reordering: 0, delay_us: (100, 600), late_us: (100, 40_000) };
pub(crate) const LOSSY: PacketFaults = PacketFaults {
    loss: PARTS / 10,
    duplication: PARTS / 20,
    reordering: PARTS / 10,
    delay_us: (100, 600),
    late_us: (100, 40_000),
};

/// Returns the configuration of a node, for a number and a start time.
pub(crate) type MakeConfig = fn(u8, u64) -> NodeConfig;

/// The default node: `linus1` and so on.
pub(crate) fn default_config(number: u8, born: u64) -> NodeConfig {
    let (key, signer) = signer(number);
    NodeConfig {
        key,
        signer,
        name: NodeName::new(&format!("linus{number}")).unwrap(),
        born,
        port: 6440,
        addresses: vec![address(number).ip()],
        exports: Vec::new(),
        cards: Vec::new(),
        peers: Vec::new(),
        trust: NodeTrust::Anyone,
        timing: ProbeTiming::default(),
        seed: born ^ u64::from(number),
    }
}

/// A node's outputs that tests look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Dead { by: u8, of: u8 },
    Suspect { by: u8, of: u8 },
    NameTaken { by: u8 },
}

pub(crate) struct TestNetwork {
    pub(crate) now: Time,
    pub(crate) nodes: BTreeMap<u8, Node>,
    pub(crate) net: PacketNet<u8>,
    pub(crate) events: Vec<Event>,
    /// `false`: packets to the segment are lost.
    pub(crate) has_segment: bool,
    /// Every packet sent, if a test records them.
    pub(crate) recorded: Option<Vec<(u8, Vec<u8>)>>,
    /// Machines that are stalled until a time.
    stalled: BTreeMap<u8, Time>,
    in_flight: EventQueue<(u8, u8, Vec<u8>)>,
    dice: Dice,
    make_config: MakeConfig,
}

impl TestNetwork {
    pub(crate) fn new(seed: u64, faults: PacketFaults, make_config: MakeConfig) -> TestNetwork {
        TestNetwork {
            now: Time(1_000_000),
            nodes: BTreeMap::new(),
            net: PacketNet::new(faults),
            events: Vec::new(),
            has_segment: true,
            recorded: None,
            stalled: BTreeMap::new(),
            in_flight: EventQueue::default(),
            dice: Dice::new(seed),
            make_config,
        }
    }

    pub(crate) fn with(count: u8, seed: u64, faults: PacketFaults) -> TestNetwork {
        let mut network = TestNetwork::new(seed, faults, default_config);
        (1..=count).for_each(|number| network.start(number));
        network
    }

    pub(crate) fn random(&mut self, bound: usize) -> usize {
        self.dice.index(bound)
    }

    /// Starts or restarts a machine.
    pub(crate) fn start(&mut self, number: u8) {
        let config = (self.make_config)(number, 1_000 + self.now.0 / 1_000_000);
        self.nodes.insert(number, Node::new(config).unwrap());
        self.step(number, NodeInput::Tick);
    }

    /// Crashes a machine.
    pub(crate) fn kill(&mut self, number: u8) {
        self.nodes.remove(&number);
    }

    /// Ends a machine with a leave message.
    pub(crate) fn leave(&mut self, number: u8) {
        self.step(number, NodeInput::Leave);
        self.nodes.remove(&number);
    }

    /// Stalls a machine for a while; packets to it wait.
    pub(crate) fn stall(&mut self, number: u8, span: Duration) {
        self.stalled.insert(number, self.now + span);
    }

    pub(crate) fn step(&mut self, number: u8, input: NodeInput<'_>) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&number) else { return };
        node.handle(now, input);
        let outputs: Vec<NodeOutput> = std::iter::from_fn(|| node.poll()).collect();
        for output in outputs {
            match output {
                NodeOutput::Send { to: Destination::Segment, packet } => {
                    let is_other = |other: &u8| self.has_segment && *other != number;
                    let others: Vec<u8> = self.nodes.keys().copied().filter(is_other).collect();
                    others.into_iter().for_each(|other| self.transmit(number, other, packet.clone()));
                }
                NodeOutput::Send { to: Destination::Address(to), packet } => {
                    let other = match to.ip() {
                        std::net::IpAddr::V4(ip) => ip.octets()[3],
                        std::net::IpAddr::V6(_) => 0,
                    };
                    self.transmit(number, other, packet);
                }
                NodeOutput::Changed { key, state } => self.note(number, key, state),
                NodeOutput::NameTaken { .. } => self.events.push(Event::NameTaken { by: number }),
            }
        }
    }

    fn note(&mut self, by: u8, key: NodeKey, state: Liveness) {
        let of = (1..=200).find(|number| signer(*number).0 == key).unwrap();
        match state {
            Liveness::Dead => self.events.push(Event::Dead { by, of }),
            Liveness::Suspect => self.events.push(Event::Suspect { by, of }),
            Liveness::Alive | Liveness::Left => {}
        }
    }

    fn transmit(&mut self, from: u8, to: u8, packet: Vec<u8>) {
        if let Some(recorded) = &mut self.recorded {
            recorded.push((from, packet.clone()));
        }
        for delay in self.net.delays(&mut self.dice, from, to) {
            self.in_flight.push(self.now + delay, (from, to, packet.clone()));
        }
    }

    /// Advances the time.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let packet = self.in_flight.next_at();
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
                None => wake.into_iter().for_each(|(_, number)| self.step(number, NodeInput::Tick)),
            }
        }
        self.now = end;
    }

    fn deliver(&mut self) {
        let Some((_, (from, to, packet))) = self.in_flight.pop() else { return };
        match self.stalled.get(&to).filter(|until| **until > self.now) {
            Some(until) => self.in_flight.push(*until, (from, to, packet)),
            None => self.step(to, NodeInput::Packet { from: address(from), bytes: &packet }),
        }
    }

    /// Each running machine has exactly the running machines in its table.
    #[track_caller]
    pub(crate) fn assert_converged(&self, context: &str) {
        let reachable: BTreeSet<NodeKey> = self.nodes.keys().map(|number| signer(*number).0).collect();
        for (number, node) in &self.nodes {
            let seen = node.nodes().filter(|view| view.state.is_up()).map(|view| view.record.key);
            assert_eq!(seen.collect::<BTreeSet<_>>(), reachable, "the table of {number}, {context}");
        }
    }
}
