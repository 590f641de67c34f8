//! A host directory, exported in place, as a [`Tree`](wirefs_server::Tree) that answers Op.
//!
//! *Holds*: no path leaves the session's root, whatever symlinks and concurrent renames there are: `openat2` resolves
//! each path beneath the root and follows no symlink. An operation and its checks use one descriptor, so they concern
//! the same object. The identity that is borrowed to create an object for a caller ends with that creation. Each change
//! is touched before it is made, and each leased object is watched. The tables of each session are bounded.
//!
//! *Never*: follows a symlink, opens a pipe or a device, decides about order (the caller does), caches.
//!
//! *Drive it*:
//! ```
//! use wirefs_hostfs::{HostOptions, HostTree};
//! use wirefs_op::TreePath;
//! use wirefs_server::{SessionKey, Tree};
//!
//! let tree = HostTree::open(&std::env::temp_dir(), HostOptions::default())?;
//! let attached = tree.attach(SessionKey(1), &TreePath::root())?;
//! assert_eq!(attached.root.kind, wirefs_op::Kind::Directory);
//! tree.end(SessionKey(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: `tests/suite`: escapes, stale fds, races, locks of server programs, callers' identity, leases; and by
//! `wirefs-model`, which compares the touched objects with the changed ones.

mod allocate;
mod attributes;
mod changes;
mod clients;
mod commit;
mod copy;
mod detection;
mod failure;
mod find;
mod get;
mod identity;
mod link;
mod lock;
mod locks;
mod open_files;
mod put;
mod remove;
mod rename;
mod resolve;
mod seek;
mod session;
mod statfs;
mod sys;
mod tree;
mod watch;
mod xattr;

pub use detection::DetectionMode;
pub use tree::{ExportError, HostOptions, HostTree};
pub use watch::{Shortage, WatchKind, Watcher};
