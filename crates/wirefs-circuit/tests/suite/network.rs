//! Nodes with cards on segments: card n of each node is on segment n. Each pair of cards on a segment is
//! connected by one lane per direction, with a configurable profile.

use std::collections::BTreeMap;
use std::time::Duration;

use ring::agreement::{EphemeralPrivateKey, X25519};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use wirefs_circuit::{
    Card, CardAddress, CardId, CircuitConfig, CircuitNode, CircuitOutput, HandshakeKey, NetworkPath, PeerKey,
    PeerTrust, Time,
};
use wirefs_lab::LaneProfile;
use wirefs_lab::lane::EmulatedLane;

const HEADER_BYTES: usize = 14;
const BUFFER_BYTES: usize = 9_216;
/// A node is in an endless loop after this many rounds at one instant.
const ROUNDS_MAX: u32 = 10_000;

pub(crate) fn us(count: u64) -> Duration {
    Duration::from_micros(count)
}

/// A lane: source node, segment, destination node.
pub(crate) type Route = (u8, u8, u8);

pub(crate) struct SimNetwork {
    pub(crate) now: Time,
    pub(crate) nodes: Vec<CircuitNode>,
    pub(crate) lanes: BTreeMap<Route, EmulatedLane>,
    /// The MTU of each segment, in bytes.
    pub(crate) segment_bytes: Vec<usize>,
    pub(crate) outputs: Vec<(u8, CircuitOutput)>,
    /// Recently sent packets, for attackers.
    pub(crate) tap: Vec<(Route, Vec<u8>)>,
    pub(crate) frames: u64,
    buffer: Vec<u8>,
    rounds: u32,
}

pub(crate) fn address(node: u8, card: u8) -> CardAddress {
    CardAddress([2, 0, 0, 0, node, card])
}

pub(crate) fn identity(node: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[node + 1; 32]).unwrap()
}

pub(crate) fn node_key(node: u8) -> PeerKey {
    PeerKey(identity(node).public_key().as_ref().try_into().unwrap())
}

pub(crate) fn handshake_key() -> HandshakeKey {
    HandshakeKey::new(EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).unwrap()).unwrap()
}

pub(crate) fn config(node: u8, cards: u8, card_bytes: usize) -> CircuitConfig {
    let card = |card| Card { address: address(node, card), packet_bytes: card_bytes };
    CircuitConfig {
        identity: identity(node),
        secret: [node ^ 0x5A; 32],
        cards: (0..cards).map(card).collect(),
        trust: PeerTrust::Anyone,
    }
}

impl SimNetwork {
    pub(crate) fn new(
        nodes: u8,
        cards: u8,
        card_bytes: usize,
        profile: &LaneProfile,
        seed: u64,
    ) -> SimNetwork {
        let mut lanes = BTreeMap::new();
        for (from, to) in
            (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))).filter(|(a, b)| a != b)
        {
            for card in 0..cards {
                let number = u64::from(from) << 16 | u64::from(card) << 8 | u64::from(to);
                lanes.insert(
                    (from, card, to),
                    EmulatedLane::new(profile.clone(), seed.wrapping_mul(0x9E37_79B9) ^ number),
                );
            }
        }
        let mut network = SimNetwork {
            now: Time(1_000_000),
            nodes: (0..nodes)
                .map(|node| CircuitNode::new(config(node, cards, card_bytes)).unwrap())
                .collect(),
            lanes,
            segment_bytes: vec![BUFFER_BYTES; usize::from(cards)],
            outputs: Vec::new(),
            tap: Vec::new(),
            frames: 0,
            buffer: vec![0; BUFFER_BYTES],
            rounds: 0,
        };
        for node in &mut network.nodes {
            (0..4).for_each(|_| node.give_key(handshake_key()));
        }
        network
    }

    /// Returns all network paths from any other node to this one.
    pub(crate) fn network_paths(&self, to: u8) -> Vec<NetworkPath> {
        let cards = self.segment_bytes.len() as u8;
        (0..cards).map(|card| NetworkPath { card: CardId(card), remote: address(to, card) }).collect()
    }

    pub(crate) fn each_lane(&mut self, of: impl Fn(Route) -> bool, change: impl Fn(&mut EmulatedLane)) {
        self.lanes.iter_mut().filter(|(route, _)| of(**route)).for_each(|(_, lane)| change(lane));
    }

    /// Sends a frame as if from this card.
    pub(crate) fn send(&mut self, route: Route, payload: &[u8]) {
        let (from, card, to) = route;
        if payload.len() > self.segment_bytes[usize::from(card)] {
            return;
        }
        self.frames += 1;
        let frame = [&address(to, card).0[..], &address(from, card).0, &[0x88, 0xB5], payload].concat();
        self.lanes.get_mut(&route).unwrap().push(self.now, frame);
    }

    fn deliver(&mut self) {
        for (&(from, card, to), lane) in &mut self.lanes {
            while let Some(mut frame) = lane.poll(self.now) {
                let source = address(from, card);
                self.nodes[usize::from(to)].receive(
                    self.now,
                    CardId(card),
                    source,
                    &mut frame[HEADER_BYTES..],
                );
            }
        }
    }

    /// Sends all ready packets, and collects outputs.
    pub(crate) fn settle(&mut self) {
        for number in 0..self.nodes.len() as u8 {
            for card in 0..self.segment_bytes.len() as u8 {
                self.send_all(number, card);
            }
            let node = &mut self.nodes[usize::from(number)];
            if node.keys_wanted() > 30 {
                node.give_key(handshake_key());
            }
            while let Some(output) = node.poll() {
                self.outputs.push((number, output));
            }
        }
    }

    fn send_all(&mut self, from: u8, card: u8) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut packets = 0;
        let was_ready = self.nodes[usize::from(from)].has_packets(self.now);
        while let Some(packet) =
            self.nodes[usize::from(from)].poll_packet(self.now, CardId(card), &mut buffer)
        {
            assert!(was_ready, "has_packets missed a packet");
            let [.., to, _] = packet.destination.0;
            let packet = &buffer[..packet.bytes];
            assert!(packet.len() >= 20, "{packet:?}");
            self.send((from, card, to), packet);
            if self.tap.len() < 512 {
                self.tap.push(((from, card, to), packet.to_vec()));
            } else {
                let at = self.frames as usize * 7 % 512;
                self.tap[at] = ((from, card, to), packet.to_vec());
            }
            packets += 1;
            assert!(packets < 100_000, "an endless loop");
        }
        self.buffer = buffer;
    }

    /// Returns the time of the next event.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let lanes = self.lanes.values().filter_map(EmulatedLane::deadline);
        lanes.chain(self.nodes.iter().filter_map(CircuitNode::deadline)).min()
    }

    /// Advances to the next event, at most to `until`, and processes it.
    pub(crate) fn step(&mut self, until: Time) {
        let next = self.deadline().unwrap_or(until).min(until);
        if next > self.now {
            self.now = next;
            self.rounds = 0;
        } else {
            self.rounds += 1;
            assert!(self.rounds < ROUNDS_MAX, "endless loop at {:?}", self.now);
        }
        self.deliver();
        for node in &mut self.nodes {
            if node.deadline().is_some_and(|at| at <= self.now) {
                node.tick(self.now);
            }
        }
        self.settle();
    }

    /// Advances the time by `span`.
    pub(crate) fn pass(&mut self, span: Duration) {
        self.settle();
        let until = self.now + span;
        while self.now < until {
            self.step(until);
        }
    }
}
