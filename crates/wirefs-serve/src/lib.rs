//! The server runtime: connections, worker threads and the clock around [`wirefs_server::Sessions`].
//!
//! ```text
//!   carrier ──► reader thread ──► core (one lock) ──► quick request: executed by this thread
//!                  ▲                   │         └──► long request: a worker of the pool ──► tree
//!                  │                   ▼                                             │
//!   carrier ◄── send queue ◄── replies (written by the thread that has the reply) ◄──┘
//! ```
//!
//! *Holds*: the reader thread executes a quick request itself, and a long one moves to a worker thread. No lock is held
//! during a system call that may block. A fault of a peer ends that peer's connection only. Each pool and queue is
//! bounded; a full one stops reading from its connection.
//!
//! *Never*: decisions about order, leases or sessions, which belong to `wirefs-server`; the kernel's FUSE messages;
//! messages to people, except one line on standard error for an operator.
//!
//! *Lock order*: the core, then a send queue, a reader's slot or the pool. No lock is taken below those.
//!
//! *Drive it*: [`Server`] takes connections, made or listened for.
//! ```
//! use std::sync::Arc;
//! use wirefs_carrier::memory;
//! use wirefs_serve::{ServeOptions, Server};
//! use wirefs_op::message::version::BootId;
//! use wirefs_op::{Errno, Reply, Request, TreePath};
//! use wirefs_server::{Attached, Replies, SessionKey, Tree};
//!
//! /// A tree without a root.
//! struct Nothing;
//! impl Tree for Nothing {
//!     fn attach(&self, _: SessionKey, _: &TreePath) -> Result<Attached, Errno> {
//!         Err(Errno::NotFound)
//!     }
//!     fn serve(&self, _: SessionKey, _: Request, replies: &mut dyn Replies) {
//!         let _gone = replies.send(Reply::Error(Errno::NotFound.into()));
//!     }
//!     fn end(&self, _: SessionKey) {}
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::start(Arc::new(Nothing), ServeOptions::new(BootId(1)))?;
//! let (near, _far) = memory::pair()?;
//! server.connect(near)?;
//! assert!(server.stop());
//! # Ok(())
//! # }
//! ```
//!
//! *Proved by*: `tests` (order under load, overtaking, hostile peers, resumed sessions, stopping) against a scripted
//! tree.

mod colocated;
mod connection;
mod core;
mod execute;
mod in_process;
mod ledgers;
mod limited;
mod listen;
mod local;
mod log;
mod options;
mod pool;
mod reader;
mod replies;
mod router;
mod server;
mod shared;
mod spent;
mod status;
#[cfg(test)]
mod tests;
mod watchdog;

pub use local::LocalDial;
pub use options::{BeforeLeasing, Believers, InProcessExecution, PeerRights, ServeOptions, ServedPlace};
pub use router::{AccessCheck, ExportRouter};
pub use server::Server;
pub use status::{ClientStatus, ServeStatus};
pub use wirefs_server::RECOVERY_PERIOD;
