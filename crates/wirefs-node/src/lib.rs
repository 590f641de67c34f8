//! Membership of nodes: which nodes are up, their exports and their names. A sans-I/O state machine; a driver owns the
//! socket and the clock.
//!
//! *Holds*: each node signs its own record, and a packet is accepted once. A node that answers no probe is suspected,
//! may refute, and is dead after the suspicion timeout. Nobody can claim about a node anything that the node could not
//! refute. A name resolves to one node, the first that had it, for as long as that node is up. A machine that was
//! stalled blames no other node. The table, packets and all queues are bounded.
//!
//! *Never*: sockets, clocks, threads, entropy.
//!
//! *Drive it*: pass events and the time to [`Node::handle`], carry out the outputs of [`Node::poll`] until it returns
//! `None`, and call again at [`Node::deadline`].
//!
//! ```
//! use ring::signature::{Ed25519KeyPair, KeyPair};
//! use core::net::SocketAddr;
//! use wirefs_node::{NodeConfig, NodeInput, NodeName, Node, NodeKey, NodeOutput, ProbeTiming, Signer, NodeTrust};
//! use wirefs_op::Time;
//!
//! let node = |number: u8, name: &str| {
//!     let pair = Ed25519KeyPair::from_seed_unchecked(&[number; 32]).ok()?;
//!     Node::new(NodeConfig {
//!         key: NodeKey(pair.public_key().as_ref().try_into().ok()?),
//!         signer: Signer::new(move |message| pair.sign(message).as_ref().try_into().ok()),
//!         name: NodeName::new(name)?,
//!         born: 1,
//!         port: 6440,
//!         addresses: vec![[10, 0, 0, number].into()],
//!         exports: Vec::new(),
//!         cards: Vec::new(),
//!         peers: Vec::new(),
//!         trust: NodeTrust::Anyone,
//!         timing: ProbeTiming::default(),
//!         seed: number.into(),
//!     })
//! };
//! let (mut near, mut far) = (node(1, "linus1").ok_or("a node")?, node(2, "linus2").ok_or("a node")?);
//! let from = SocketAddr::from(([10, 0, 0, 1], 6440));
//! near.handle(Time(1), NodeInput::Tick);
//! while let Some(output) = near.poll() {
//!     if let NodeOutput::Send { packet, .. } = output {
//!         far.handle(Time(2), NodeInput::Packet { from, bytes: &packet });
//!     }
//! }
//! let names: Vec<String> = far.nodes().map(|node| node.record.name.to_string()).collect();
//! assert_eq!(names, ["linus2", "linus1"]);
//! # Ok::<(), &str>(())
//! ```
//!
//! [`invitation`] is a second machine: it exchanges the keys of two machines by a short code. [`discovery`] has the messages by which servers
//! are found.
//!
//! *Proved by*: unit tests beside each module; `node/tests` runs nodes in a simulated network with loss, duplication,
//! delay, partitions, crashes, restarts and attackers.

pub mod discovery;
pub mod invitation;
pub mod limits;

mod config;
mod key;
mod output;
mod record;
mod signature;

mod random;
mod replay;
mod wire;

mod gossip;
mod member;
mod packet;
mod probes;
mod table;

mod node;

pub use config::{NodeConfig, NodeTrust, ProbeTiming};
pub use key::{NodeKey, NodeName};
pub use member::Liveness;
pub use node::Node;
pub use output::{Destination, NodeCounters, NodeInput, NodeOutput, NodeView};
pub use record::{EtherCard, NodeExport, NodeRecord, pair_cards};
pub use signature::Signer;
