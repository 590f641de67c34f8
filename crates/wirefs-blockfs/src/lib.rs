//! A block tree as a [`Tree`](wirefs_server::Tree) that answers Op, so that it can be served, mounted and exported.
//!
//! *Holds*: what the server's clients believe is recalled before it changes, and each change is one of theirs, so that
//! nothing of a block tree needs to be watched.
//!
//! *Never*: decisions about blocks, which are `wirefs-blocks`'; protocol.
//!
//! *Drive it*: [`BlockFs::open`] over any [`BlockStore`](wirefs_blocks::store::BlockStore); the result goes wherever a tree
//! goes: `Server::start`, and from there to listeners or to a mount in the same process (`wirefs_driver::mount::LocalDial`).
//! ```
//! use std::sync::Arc;
//! use wirefs_blockfs::{BlockFs, BlockFsOptions};
//! use wirefs_blocks::store::MemoryStore;
//! use wirefs_op::TreePath;
//! use wirefs_op::message::version::BootId;
//! use wirefs_server::{SessionKey, Tree};
//!
//! let store = Arc::new(MemoryStore::new(4096, 1 << 20));
//! let tree = BlockFs::open(store, BlockFsOptions::new(BootId(1)))?;
//! let attached = tree.attach(SessionKey(1), &TreePath::root())?;
//! assert_eq!(attached.root.kind, wirefs_op::Kind::Directory);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod disk;
mod keeping;
mod lock;
mod locks;
mod tree;

pub use disk::{DISK_PAYLOAD_BYTES, DiskFault, DiskStore};
pub use tree::{BlockFs, BlockFsOptions};
