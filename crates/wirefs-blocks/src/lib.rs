//! The block tree: a file system of immutable blocks over a store that registers, retrieves and deregisters them.
//!
//! A change never alters a block. It makes new ones, from the place that changes up to a new root, registers them, switches
//! the root, and lets go of those that nothing reaches any more. So each root is a whole tree, a checkpoint is a root that
//! is kept, and what was received twice or late cannot be mistaken for what is there now.
//!
//! ```text
//!                     root ── table: checkpoints, trees that are taken apart
//!                      │
//!                    link ─────────────┐        one sorted map from keys to items: objects in the order in which they
//!                   /    \             │        were made, so that a small directory's children sit beside each other;
//!                head    head        head       of each its head, its names, its attributes, its runs of contents.
//!                         │ run                 A small file sits in its head block.
//!                      contents …
//! ```
//!
//! *Holds*: ids are never used twice, also not over a crash, and are in one order over all nodes; no block is larger than
//! the store's payload; what the root or a checkpoint reaches is registered, and all else is deregistered by and by, in
//! steps that are bounded; a reader sees one root from its beginning to its end; memory between operations is as much as
//! was asked for, and an operation holds what it looks at, never the tree; a lost block harms what is in it and nothing
//! beside it.
//!
//! *Never*: names tied to blocks (a name leads to an object, which has any number of them); a clock or a thread of its own:
//! the time is asked of whoever opened the tree, and only a [`store::BlockStore`] may wait.
//!
//! *Drive it*: [`tree::BlockTree::open`] over a store; [`tree::BlockTree::serve`] answers requests of Op, from several
//! threads at once.
//! ```
//! use std::sync::Arc;
//! use wirefs_blocks::id::NodeId;
//! use wirefs_blocks::store::MemoryStore;
//! use wirefs_blocks::tree::{BlockTree, TreeOptions};
//! use wirefs_op::message::version::BootId;
//! use wirefs_op::{Timestamp, TreePath};
//!
//! let store = Arc::new(MemoryStore::new(1400, 1000));
//! let options = TreeOptions { ram_bytes: 0, node: NodeId(0), boot: BootId(1), uid: 0, gid: 0 };
//! let tree = BlockTree::open(store, options, Box::new(|| Timestamp { secs: 1, nanos: 0 }))?;
//! assert_eq!(tree.attach(1, &TreePath::root()).map(|attached| attached.is_read_only), Ok(false));
//! tree.create_checkpoint(b"empty").unwrap();
//! assert_eq!(tree.checkpoints().len(), 1);
//! # Ok::<(), wirefs_blocks::tree::OpenFault>(())
//! ```
//!
//! *Proved by*: tests beside each part; random operations after which the registered blocks are exactly those that are
//! reached (`tree/tests`); the reference model beside it over several stores, in `wirefs-blockfs`.

mod block;
mod cache;
mod change;
mod codec;
mod collect;
mod geometry;
mod halt;
pub mod id;
mod item;
mod key;
pub mod limits;
mod map;
mod opens;
pub mod reach;
mod shelf;
pub mod store;
pub mod touch;
pub mod tree;
pub mod turns;
mod view;
mod volume;
