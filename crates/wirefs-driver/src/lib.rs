//! The threads that join cores, carriers and the kernel: one side serves a tree, the other mounts one.
//!
//! *Holds*: a miss crosses one thread each way and a warm hit none; no lock is held over a system call that may wait;
//! what a peer does wrong ends its own connection and nothing else; a mount dials again for as long as it lives; each
//! pool and queue is bounded, and a full one pushes back onto the wire.
//!
//! *Never*: decisions about files, caching, order or sessions, which are the cores'; messages to people, but one line on
//! standard error for what an operator should know.
//!
//! *Drive it*: [`mount::connect`] reaches a server and [`mount::Connected::mount`] mounts what it has; [`serve::Server`]
//! takes connections, made or listened for.
//! ```
//! use std::sync::Arc;
//! use wirefs_carrier::memory;
//! use wirefs_driver::serve::{ServeOptions, Server};
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
//! *Proved by*: `serve/tests` (order under load, overtaking, hostile peers, resumed sessions, stopping) against a tree
//! that plays a script; the mounting side by `tests/suite` of the command, on real mounts.

pub mod mount;
pub mod net;
pub mod node;
pub mod serve;

mod sys;
