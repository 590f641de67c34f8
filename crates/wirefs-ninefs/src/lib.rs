//! A 9P server as a [`Tree`](wirefs_server::Tree) that answers Op.
//!
//! *Holds*: a read of a program is one Tread for each message that its bytes need, and none after a short one, so a file
//! whose reads have effects shows each of them once; data that nobody asked for is never read; a fid that nobody uses
//! is given back; a broken connection is dialed again, and open files are then found by their paths; nothing that the
//! server sends is trusted.
//!
//! *Never*: leases (9P tells nobody of changes); a cache.
//!
//! *Drive it*:
//! ```no_run
//! use wirefs_ninefs::{NineSource, NineTree};
//! use wirefs_op::TreePath;
//! use wirefs_op::message::version::BootId;
//! use wirefs_server::{SessionKey, Tree};
//!
//! let source = NineSource::parse(b"9p://localhost:5640/srv").ok_or("no 9P source")??;
//! let tree = NineTree::open(source, BootId(1))?;
//! let attached = tree.attach(SessionKey(1), &TreePath::root())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: `tests/suite`: diod as the server, and a synthetic server whose files have length 0 and count their
//! reads.

mod remote;
mod source;
mod tree;
mod wire;

pub use source::{NineSource, NineSourceError};
pub use tree::NineTree;
