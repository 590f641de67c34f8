//! Circuits over Ethernet packets: sealed, reliable, ordered, over several cards at once. This is the protocol; a driver
//! has the cards and the clock.
//!
//! *Holds*: the bytes of a circuit arrive exactly as they were written, in order, once, or the circuit or its group is
//! reported over; a packet that is forged, damaged, replayed or meant for another place changes nothing but a counter; a
//! peer has proved its key before anything it sends counts; a path that dies takes no data with it while another lives;
//! nobody makes a node hold more than its limits, and a stranger no more than a few handshakes.
//!
//! *Never*: sockets, clocks, threads, chance.
//!
//! *Drive it*: give each packet that a card receives to [`Node::receive`]; after that, and after each call that has
//! something sent, send what [`Node::poll_packet`] writes for each card until it writes nothing, and hear what
//! [`Node::poll`] tells; call [`Node::tick`] at [`Node::deadline`]; have [`Node::keys_wanted`] keys made.
//!
//! ```
//! use ring::agreement::{EphemeralPrivateKey, X25519};
//! use ring::{rand::SystemRandom, signature::Ed25519KeyPair};
//! use wirefs_circuit::{
//!     Address, Card, CardId, CircuitId, Class, Config, HandshakeKey, Node, Output, Read, Time, Trust, Way,
//! };
//!
//! let card = CardId(0);
//! let node = |number: u8| {
//!     let mut node = Node::new(Config {
//!         identity: Ed25519KeyPair::from_seed_unchecked(&[number; 32]).map_err(|_| "a seed")?,
//!         secret: [number; 32],
//!         cards: vec![Card { address: Address([number; 6]), packet_bytes: 1_500 }],
//!         trust: Trust::Anyone,
//!     })?;
//!     let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(|_| "chance")?;
//!     node.give_key(HandshakeKey::new(private).ok_or("of the right kind")?);
//!     Ok::<Node, Box<dyn std::error::Error>>(node)
//! };
//! let (mut near, mut far, now) = (node(1)?, node(2)?, Time::default());
//! fn carry(now: Time, from: &mut Node, number: u8, to: &mut Node) {
//!     let mut buffer = [0; 1_500];
//!     while let Some(packet) = from.poll_packet(now, CardId(0), &mut buffer) {
//!         to.receive(now, CardId(0), Address([number; 6]), &mut buffer[..packet.bytes]);
//!     }
//! }
//! let group = near.dial(now, &[Way { card, remote: Address([2; 6]) }], None)?;
//! for _ in 0..3 {
//!     carry(now, &mut near, 1, &mut far);
//!     carry(now, &mut far, 2, &mut near);
//! }
//! let circuit = near.open(group, Class::Request)?;
//! near.write(circuit, &mut "hello".into())?;
//! carry(now, &mut near, 1, &mut far);
//! let told: Vec<Output> = std::iter::from_fn(|| far.poll()).collect();
//! let opened: CircuitId = told.iter().find_map(|told| match told {
//!     Output::Opened(circuit) => Some(*circuit),
//!     _ => None,
//! }).ok_or("it is open")?;
//! assert_eq!(far.read(opened), Read::Data("hello".into()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: unit tests beside each part; `tests/suite`, where nodes live in a simulated network that delays, loses,
//! doubles, reorders, damages, cuts cables, and is attacked; thousands of seeds by `make circuits`.

pub mod limits;

mod address;
mod config;
mod counters;
mod output;

mod cookie;
mod handshake;
mod ranges;
mod replay;
mod rtt;
mod seal;
mod wire;

mod flight;
mod rate;
mod sizing;

mod receiving;
mod sending;

mod circuits;
mod group;
mod node;
mod path;

pub use address::{Address, CardId, CircuitId, Class, GroupId, NodeKey, Number, Way};
pub use config::{Card, Config, Trust};
pub use counters::Counters;
pub use handshake::HandshakeKey;
pub use node::Node;
pub use output::{Departure, DialFault, Lost, Misuse, Output, PathState, PeerFault, Read};
pub use wirefs_op::Time;
