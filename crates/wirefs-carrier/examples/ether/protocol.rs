//! The cost of the protocol itself: two nodes in one thread, with packets passed in memory; and the cost of sealing and
//! opening the same bytes.

use std::time::Instant;

use bytes::Bytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, X25519};
use ring::{rand::SystemRandom, signature::Ed25519KeyPair};
use wirefs_circuit::{
    Card, CardAddress, CardId, CircuitClass, CircuitConfig, CircuitId, CircuitNode, CircuitOutput,
    HandshakeKey, NetworkPath, PeerTrust, Read, Time,
};

use crate::Outcome;
use crate::site::median;

const PACKET_BYTES: usize = 9_000;
const CARD: CardId = CardId(0);
/// Trips between two reads of the clock.
const TRIPS: u32 = 200;
const ROUNDS: usize = 200;

fn node(number: u8) -> Outcome<CircuitNode> {
    let mut node = CircuitNode::new(CircuitConfig {
        identity: Ed25519KeyPair::from_seed_unchecked(&[number; 32]).map_err(|_| "a seed")?,
        secret: [number; 32],
        cards: vec![Card { address: CardAddress([number; 6]), packet_bytes: PACKET_BYTES }],
        trust: PeerTrust::Anyone,
    })?;
    let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(|_| "chance")?;
    node.give_key(HandshakeKey::new(private).ok_or("of another kind")?);
    Ok(node)
}

struct Pair {
    nodes: [CircuitNode; 2],
    circuits: [Option<CircuitId>; 2],
    begun: Instant,
    buffer: Vec<u8>,
}

impl Pair {
    fn now(&self) -> Time {
        Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Passes packets from one node to the other. Returns the number of packets.
    fn carry(&mut self, from: usize) -> usize {
        let now = self.now();
        let [first, second] = &mut self.nodes;
        let (source, target) = if from == 0 { (first, second) } else { (second, first) };
        let mut count = 0;
        while let Some(packet) = source.poll_packet(now, CARD, &mut self.buffer) {
            let packet = self.buffer.get_mut(..packet.bytes).unwrap_or_default();
            target.receive(now, CARD, CardAddress([from as u8 + 1; 6]), packet);
            count += 1;
        }
        count
    }

    fn notify(&mut self, at: usize) {
        let now = self.now();
        let Some(node) = self.nodes.get_mut(at) else { return };
        if node.deadline().is_some_and(|due| due <= now) {
            node.tick(now);
        }
        while let Some(notified) = node.poll() {
            if let CircuitOutput::Opened(circuit) = notified {
                self.circuits = self.circuits.map(|known| known.or(Some(circuit)));
            }
        }
    }

    fn send(&mut self, from: usize, message: &Bytes) -> Outcome<()> {
        let mut message = message.clone();
        let [first, second] = self.circuits;
        let circuit = if from == 0 { first } else { second }.ok_or("no circuit")?;
        self.nodes.get_mut(from).ok_or("no node")?.write(circuit, &mut message)?;
        self.carry(from);
        self.notify(1 - from);
        let node = self.nodes.get_mut(1 - from).ok_or("no node")?;
        let [first, second] = self.circuits;
        let circuit = if from == 1 { first } else { second }.ok_or("no circuit")?;
        while let Read::Data(_) = node.read(circuit) {}
        Ok(())
    }
}

fn pair() -> Outcome<Pair> {
    let nodes = [node(1)?, node(2)?];
    let mut pair = Pair { nodes, circuits: [None; 2], begun: Instant::now(), buffer: vec![0; PACKET_BYTES] };
    let now = pair.now();
    let path = NetworkPath { card: CARD, remote: CardAddress([2; 6]) };
    let [near, _] = &mut pair.nodes;
    let group = near.dial(now, &[path], None)?;
    for _ in 0..8 {
        pair.carry(0);
        pair.carry(1);
    }
    let [near, far] = &mut pair.nodes;
    while near.poll().is_some() {}
    while far.poll().is_some() {}
    let circuit = near.open(group, CircuitClass::Bulk)?;
    near.write(circuit, &mut Bytes::from_static(b"hello"))?;
    pair.carry(0);
    pair.notify(1);
    pair.circuits = [Some(circuit), pair.circuits.first().copied().flatten()];
    Ok(pair)
}

/// Returns the median time of one of the `TRIPS` operations of `work`, in nanoseconds.
fn nanoseconds(mut work: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let mut samples = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..TRIPS {
            work()?;
        }
        samples.push(begun.elapsed().as_nanos() as f64 / f64::from(TRIPS));
    }
    Ok(median(samples))
}

fn seals(bytes: usize) -> Outcome<f64> {
    let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).map_err(|_| "a key")?;
    let key = LessSafeKey::new(key);
    let mut packet = vec![0; bytes + 13];
    let nonce = || Nonce::assume_unique_for_key([0; 12]);
    let mut once = || -> Outcome<()> {
        let along = Aad::from([0; 20]);
        let tag = key.seal_in_place_separate_tag(nonce(), along, &mut packet).map_err(|_| "sealed")?;
        let tag = Tag::from(<[u8; 16]>::try_from(tag.as_ref())?);
        key.open_in_place_separate_tag(nonce(), along, tag, &mut packet, 0..).map_err(|_| "opened")?;
        Ok(())
    };
    nanoseconds(|| {
        once()?;
        once()
    })
}

pub(crate) fn run() -> Outcome<()> {
    println!("{:>6} {:>16} {:>26}", "bytes", "a round trip, ns", "two seals, two opens, ns");
    for bytes in [64, 1_024, 4_096] {
        let message = Bytes::from(vec![7; bytes]);
        let mut pair = pair()?;
        let whole = nanoseconds(|| {
            pair.send(0, &message)?;
            pair.send(1, &message)
        })?;
        println!("{bytes:6} {whole:16.0} {:26.0}", seals(bytes)?);
    }
    Ok(())
}
