//! A host directory, exported in place, as a [`Tree`](wirefs_server::Tree) that answers Op.
//!
//! *Holds*: nothing outside the session's root is ever reached, whatever links and concurrent renames there are (each
//! path is resolved by `openat2` beneath the root and through no symbolic link); an operation and the check of what it
//! works on mean the same object, since both use one descriptor; the identity borrowed to create an object for a caller
//! never outlives that creation; what is changed was said to be about to change, and what is promised is watched; each
//! session's tables are bounded.
//!
//! *Never*: follows a symbolic link, opens a pipe or a device, decides about order (the caller does), caches.
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
//! *Proved by*: `tests/suite`: escapes, stale descriptors, races, locks against local programs, callers' identity, promises;
//! and by `wirefs-model`, which compares what is touched with what changes.

mod allocate;
mod attributes;
mod changes;
mod commit;
mod copy;
mod failure;
mod find;
mod get;
mod identity;
mod link;
mod lock;
mod locks;
mod open_files;
mod promise;
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

pub use promise::Notice;
pub use tree::{HostOptions, HostTree, OpenError};
pub use watch::{Shortage, WatchKind, Watcher};
