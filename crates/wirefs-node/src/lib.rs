//! The table of nodes: who is there, what each serves, and what it is called. This is the protocol; a driver has the
//! socket and the clock.
//!
//! *Holds*: what a node says of itself is signed by it, and counts once; a node that answers nobody is suspected, has a
//! moment to refute, and is dead after that; nobody can say of a node what it could not refute; a name leads to one node,
//! the first that had it, for as long as that is there; a machine that did not run blames nobody for it; table, packets
//! and everything that waits are bounded.
//!
//! *Never*: sockets, clocks, threads, chance of its own.
//!
//! *Drive it*: hand [`Node::handle`] what happens and the time; then carry out what [`Node::poll`] says until it says
//! nothing; call again at [`Node::deadline`].
//!
//! ```
//! use ring::signature::{Ed25519KeyPair, KeyPair};
//! use core::net::SocketAddr;
//! use wirefs_node::{Config, Input, Name, Node, NodeKey, Output, Pace, Signer, Trust};
//! use wirefs_op::Time;
//!
//! let node = |number: u8, name: &str| {
//!     let pair = Ed25519KeyPair::from_seed_unchecked(&[number; 32]).ok()?;
//!     Node::new(Config {
//!         key: NodeKey(pair.public_key().as_ref().try_into().ok()?),
//!         signer: Signer::new(move |message| pair.sign(message).as_ref().try_into().ok()),
//!         name: Name::new(name)?,
//!         born: 1,
//!         port: 6440,
//!         addresses: vec![[10, 0, 0, number].into()],
//!         exports: Vec::new(),
//!         cards: Vec::new(),
//!         peers: Vec::new(),
//!         trust: Trust::Anyone,
//!         pace: Pace::default(),
//!         seed: number.into(),
//!     })
//! };
//! let (mut near, mut far) = (node(1, "linus1").ok_or("a node")?, node(2, "linus2").ok_or("a node")?);
//! let from = SocketAddr::from(([10, 0, 0, 1], 6440));
//! near.handle(Time(1), Input::Tick);
//! while let Some(output) = near.poll() {
//!     if let Output::Send { packet, .. } = output {
//!         far.handle(Time(2), Input::Packet { from, bytes: &packet });
//!     }
//! }
//! let names: Vec<String> = far.nodes().map(|node| node.record.name.to_string()).collect();
//! assert_eq!(names, ["linus2", "linus1"]);
//! # Ok::<(), &str>(())
//! ```
//!
//! *Proved by*: unit tests beside each part; `node/tests`, where nodes live in a simulated network that loses, doubles,
//! delays and cuts, are killed and come back, and are attacked.

pub mod limits;

mod config;
mod key;
mod output;
mod record;
mod seal;

mod chance;
mod replay;
mod wire;

mod gossip;
mod member;
mod packet;
mod probing;
mod table;

mod node;

pub use config::{Config, Pace, Trust};
pub use key::{Name, NodeKey};
pub use member::Liveness;
pub use node::Node;
pub use output::{Counters, Destination, Input, NodeView, Output};
pub use record::{EtherCard, Export, Record, pairs};
pub use seal::Signer;
