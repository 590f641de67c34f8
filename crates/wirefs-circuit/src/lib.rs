//! Circuits: encrypted, reliable, ordered byte streams over Ethernet packets and several network cards. This
//! crate is the protocol; a driver provides the cards and the clock.
//!
//! *Holds*:
//! * The bytes of a circuit arrive exactly once, unmodified and in order, or the circuit or its group is
//!   reported as closed.
//! * A forged, damaged, replayed or misdirected packet only increments a counter.
//! * Nothing from a peer counts before the peer has proved its key.
//! * The failure of a path loses no data while another path is live.
//! * Memory is bounded, whatever peers send. An unauthenticated peer causes at most a few handshakes.
//!
//! *Never*: sockets, clocks, threads, randomness.
//!
//! *Drive it*: pass each received packet to [`CircuitNode::receive`]. After that, and after each call that
//! may send, send the packets from [`CircuitNode::poll_packet`] for each card until there are none, and
//! handle the outputs of [`CircuitNode::poll`]. Call [`CircuitNode::tick`] at [`CircuitNode::deadline`].
//! Supply the number of key pairs that [`CircuitNode::keys_wanted`] returns.
//!
//! ```
//! use ring::agreement::{EphemeralPrivateKey, X25519};
//! use ring::{rand::SystemRandom, signature::Ed25519KeyPair};
//! use wirefs_circuit::{Card, CardAddress, CardId, CircuitClass, CircuitConfig, CircuitId, CircuitNode};
//! use wirefs_circuit::{CircuitOutput, HandshakeKey, NetworkPath, PeerTrust, Read, Time};
//!
//! let card = CardId(0);
//! let node = |number: u8| {
//!     let mut node = CircuitNode::new(CircuitConfig {
//!         identity: Ed25519KeyPair::from_seed_unchecked(&[number; 32]).map_err(|_| "invalid seed")?,
//!         secret: [number; 32],
//!         cards: vec![Card { address: CardAddress([number; 6]), packet_bytes: 1_500 }],
//!         trust: PeerTrust::Anyone,
//!     })?;
//!     let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(|_| "no randomness")?;
//!     node.give_key(HandshakeKey::new(private).ok_or("not an X25519 key")?);
//!     Ok::<CircuitNode, Box<dyn std::error::Error>>(node)
//! };
//! let (mut near, mut far, now) = (node(1)?, node(2)?, Time::default());
//! fn carry(now: Time, from: &mut CircuitNode, number: u8, to: &mut CircuitNode) {
//!     let mut buffer = [0; 1_500];
//!     while let Some(packet) = from.poll_packet(now, CardId(0), &mut buffer) {
//!         to.receive(now, CardId(0), CardAddress([number; 6]), &mut buffer[..packet.bytes]);
//!     }
//! }
//! let group = near.dial(now, &[NetworkPath { card, remote: CardAddress([2; 6]) }], None)?;
//! for _ in 0..3 {
//!     carry(now, &mut near, 1, &mut far);
//!     carry(now, &mut far, 2, &mut near);
//! }
//! let circuit = near.open(group, CircuitClass::Request)?;
//! near.write(circuit, &mut "hello".into())?;
//! carry(now, &mut near, 1, &mut far);
//! let outputs: Vec<CircuitOutput> = std::iter::from_fn(|| far.poll()).collect();
//! let opened: CircuitId = outputs.iter().find_map(|output| match output {
//!     CircuitOutput::Opened(circuit) => Some(*circuit),
//!     _ => None,
//! }).ok_or("no circuit was opened")?;
//! assert_eq!(far.read(opened), Read::Data("hello".into()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: unit tests; `tests/suite`, with a simulated network that delays, loses, duplicates, reorders
//! and damages packets, with cut cables and attackers; thousands of seeds by `make circuits`.
//!
//! # Source
//! RFC 9000 and 9002 (QUIC): streams, loss detection. BBR, SIGMA. PODOS File System: all cards at once.

pub mod limits;

mod address;
mod byte_ranges;
mod circuits;
mod config;
mod congestion;
mod cookie;
mod counters;
mod group;
mod handshake;
mod mtu;
mod node;
mod output;
mod path;
mod receive_buffer;
mod replay_window;
mod rtt;
mod seal;
mod send_buffer;
mod sent_packets;
mod wire;

pub use address::{
    CardAddress, CardId, CircuitClass, CircuitId, CircuitNumber, GroupId, NetworkPath, PeerKey,
};
pub use config::{Card, CircuitConfig, PeerTrust};
pub use counters::CircuitCounters;
pub use handshake::HandshakeKey;
pub use node::CircuitNode;
pub use output::{
    CircuitFault, CircuitMisuse, CircuitOutput, CloseReason, DialFault, OutgoingPacket, PathState, Read,
};
pub use wirefs_op::Time;
