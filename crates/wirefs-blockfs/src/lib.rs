//! A block tree as a [`Tree`](wirefs_server::Tree), so that it can be served, mounted and exported.
//!
//! *Holds*: leases are recalled before an object changes. All changes are requests of clients, so the tree
//! needs no watching for changes from outside.
//!
//! *Never*: decisions about blocks, which belong to `wirefs-blocks`; protocol.
//!
//! *Drive it*: [`BlockFs::open`] on any [`BlockStore`](wirefs_blocks::store::BlockStore), then pass the tree
//! to `Server::start`, and the server to listeners or to a mount in the same process
//! (`wirefs_serve::LocalDial`).
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

mod disk;
mod maintenance;
mod replies;
mod tree;

pub use disk::{DISK_PAYLOAD_BYTES, DiskFault, DiskStore};
pub use tree::{BlockFs, BlockFsOptions};
