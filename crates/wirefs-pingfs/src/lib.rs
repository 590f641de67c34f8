//! A block store in ICMP echo packets that circulate between this machine and the hosts it pings.
//!
//! ```text
//!   tree ── register, retrieve, deregister ──> EchoStore ──> EchoDriver ──> echo state machine (wirefs-echo)
//!                                                 |              └──────> raw sockets (wirefs-raw) ── pings ──> hosts
//!                                               keeper: the thread that polls while no caller does
//! ```
//!
//! *Holds*: only hosts that the caller names are pinged, and each is measured before it gets a block. No more
//! is admitted than the hosts carry and the receive buffers hold if all packets arrive at once. A caller that
//! waits for a block polls the sockets itself, so no thread switch is between a packet and its reader.
//!
//! *Never*: contents in memory except those being sent and, for two round trips, those that a caller waited
//! for; decisions about loss, rate or admission, which the echo state machine makes; files, except the one
//! that [`save`](save::write) writes.
//!
//! *Drive it*: [`EchoStore::open`] measures the hosts and starts the keeper. The result is a
//! [`BlockStore`](wirefs_blocks::store::BlockStore).
//!
//! ```no_run
//! use std::path::Path;
//! use wirefs_blocks::id::{BlockId, WriterId};
//! use wirefs_blocks::store::{BlockStore, Wanted};
//! use wirefs_pingfs::{EchoOptions, EchoStore, save};
//!
//! let store = EchoStore::open(EchoOptions::new(vec!["192.0.2.1:0".parse()?]))?;
//! let id = BlockId::new(1, WriterId(0)).ok_or("a valid id")?;
//! store.register(&[(id, "some block".into())])?;
//! store.switch_root(id)?;
//! store.retrieve(&Wanted::of([id]), &mut |id, block| println!("{id}: {block:?}"));
//! save::write(&store, Path::new("tree"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: unit tests of the file format and the ages; `tests/suite`, which needs root: real pings in
//! namespaces.

pub mod limits;

mod ages;
mod echo_driver;
mod keeper;
mod missing_blocks;
pub mod nodes;
pub mod options;
mod pacing;
mod pending_reads;
mod recent;
pub mod save;
pub mod status;
mod store;
pub mod survey;

pub use nodes::{NodeOptions, ReplicatedStore};
pub use options::EchoOptions;
pub use status::{EchoStatus, HostReport};
pub use store::{EchoStore, OpenError};
pub use survey::{HostSurvey, SurveyError};
