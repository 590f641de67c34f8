//! What the protocol itself costs: two nodes in one thread, whose packets are handed over in memory. Beside it what sealing and
//! opening the same bytes costs.

use std::time::Instant;

use bytes::Bytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, X25519};
use ring::{rand::SystemRandom, signature::Ed25519KeyPair};
use wirefs_circuit::{
    Card, CardAddress as Address, CardId, CircuitClass as Class, CircuitConfig as Config, CircuitId,
    CircuitNode as Node, CircuitOutput as Output, HandshakeKey, NetworkPath, PeerTrust as Trust, Read, Time,
};

use crate::Outcome;
use crate::site::median;

const PACKET_BYTES: usize = 9_000;
const CARD: CardId = CardId(0);
/// Trips between two looks at the clock.
const TRIPS: u32 = 200;
const ROUNDS: usize = 200;

fn node(number: u8) -> Outcome<Node> {
    let mut node = Node::new(Config {
        identity: Ed25519KeyPair::from_seed_unchecked(&[number; 32]).map_err(|_| "a seed")?,
        secret: [number; 32],
        cards: vec![Card { address: Address([number; 6]), packet_bytes: PACKET_BYTES }],
        trust: Trust::Anyone,
    })?;
    let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(|_| "chance")?;
    node.give_key(HandshakeKey::new(private).ok_or("of another kind")?);
    Ok(node)
}

struct Pair {
    nodes: [Node; 2],
    circuits: [Option<CircuitId>; 2],
    begun: Instant,
    buffer: Vec<u8>,
}

impl Pair {
    fn now(&self) -> Time {
        Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Carries what one has to say to the other. Returns how many packets that were.
    fn carry(&mut self, from: usize) -> usize {
        let now = self.now();
        let [first, second] = &mut self.nodes;
        let (source, target) = if from == 0 { (first, second) } else { (second, first) };
        let mut count = 0;
        while let Some(packet) = source.poll_packet(now, CARD, &mut self.buffer) {
            let packet = self.buffer.get_mut(..packet.bytes).unwrap_or_default();
            target.receive(now, CARD, Address([from as u8 + 1; 6]), packet);
            count += 1;
        }
        count
    }

    fn tell(&mut self, at: usize) {
        let now = self.now();
        let Some(node) = self.nodes.get_mut(at) else { return };
        if node.deadline().is_some_and(|due| due <= now) {
            node.tick(now);
        }
        while let Some(told) = node.poll() {
            if let Output::Opened(circuit) = told {
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
        self.tell(1 - from);
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
    let way = NetworkPath { card: CARD, remote: Address([2; 6]) };
    let [near, _] = &mut pair.nodes;
    let group = near.dial(now, &[way], None)?;
    for _ in 0..8 {
        pair.carry(0);
        pair.carry(1);
    }
    let [near, far] = &mut pair.nodes;
    while near.poll().is_some() {}
    while far.poll().is_some() {}
    let circuit = near.open(group, Class::Bulk)?;
    near.write(circuit, &mut Bytes::from_static(b"hello"))?;
    pair.carry(0);
    pair.tell(1);
    pair.circuits = [Some(circuit), pair.circuits.first().copied().flatten()];
    Ok(pair)
}

/// The median of nanoseconds for one of what `work` does `TRIPS` times.
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
