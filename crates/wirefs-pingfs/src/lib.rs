//! A block store in running order whose blocks are in ICMP echo packets: on their way to hosts and back, nowhere else.
//!
//! ```text
//!   tree ── register, retrieve, deregister ──> EchoStore ──> Circuit ──> echo machine (wirefs-echo)
//!                                                 |             └─────> raw sockets (wirefs-raw) ── pings ──> hosts
//!                                               keeper: the thread that sends on what comes back while nobody waits
//! ```
//!
//! *Holds*: only hosts that the caller names are pinged, and each is measured before it is given a block; what was
//! admitted is what the hosts carry and what the receive buffers hold, should all of it come at once; whoever waits for a
//! block turns the circuit itself, so no thread has to be woken between a packet and its reader.
//!
//! *Never*: contents in memory but those on their way out and, for two round trips, those that somebody waited for; decisions about loss, rate or
//! admission, which are the echo machine's; a file, but the one that [`save`](save::write) is told to write.
//!
//! *Drive it*: [`EchoStore::open`] measures the hosts and starts the keeper; then it is a
//! [`BlockStore`](wirefs_blocks::store::BlockStore).
//!
//! ```no_run
//! use std::path::Path;
//! use wirefs_blocks::id::{BlockId, TreeNodeId};
//! use wirefs_blocks::store::{BlockStore, Wanted};
//! use wirefs_pingfs::{EchoOptions, EchoStore, save};
//!
//! let store = EchoStore::open(EchoOptions::new(vec!["192.0.2.1:0".parse()?]))?;
//! let id = BlockId::new(1, TreeNodeId(0)).ok_or("it is one")?;
//! store.register(&[(id, "some block".into())])?;
//! store.switch_root(id)?;
//! store.retrieve(&Wanted::of([id]), &mut |id, block| println!("{id}: {block:?}"));
//! save::write(&store, Path::new("tree"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: unit tests of the file format and the ages; `tests/suite`, which needs root: real pings in namespaces.

pub mod limits;

mod ages;
mod circuit;
mod doubt;
mod keeper;
pub mod nodes;
pub mod options;
mod recent;
pub mod save;
pub mod status;
mod store;
pub mod survey;
mod tempo;
mod waiting;

pub use nodes::{CommonStore, NodeOptions};
pub use options::EchoOptions;
pub use status::{EchoStatus, HostReport};
pub use store::{EchoStore, OpenError};
pub use survey::{Refused, Survey};
