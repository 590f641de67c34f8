//! A copy-on-write file system with snapshots, on a store of immutable blocks.
//!
//! A change never modifies a block. It writes new blocks from the modified leaf up to a new root, and
//! registers them. Then it switches the root and deregisters the blocks that are no longer reachable. Each
//! root is therefore a consistent tree, and a checkpoint (snapshot) is a root that is kept. A block that
//! arrives twice or late is harmless, because a block id never refers to other contents.
//!
//! ```text
//!                     root ── table: checkpoints, trees that are being destroyed
//!                      │
//!                    index ────────────┐        One B-tree from keys to items. Objects are sorted by creation group, so
//!                   /    \             │        the children of a small directory are adjacent. Items of an object: its
//!                head    head        head       head (inode), directory entries, extended attributes, runs of contents.
//!                         │ run                 A small file is stored inline in its head block.
//!                      contents …
//! ```
//!
//! *Holds*:
//! * Block ids are never reused, not even after a crash. They have one total order over all nodes.
//! * No block is larger than the payload of the store.
//! * Blocks that are reachable from the root or from a checkpoint are registered. All others are deregistered
//!   in bounded steps.
//! * A reader sees one root from beginning to end.
//! * Memory between operations stays within the configured budget. An operation holds the blocks it reads,
//!   never the tree.
//! * The loss of a block affects only the data in it and below it.
//!
//! *Never*: names tied to blocks (a name refers to an object, and an object may have several names); a clock
//! or thread of its own. The caller of [`tree::BlockTree::open`] passes the clock, and only a
//! [`store::BlockStore`] blocks.
//!
//! *Drive it*: [`tree::BlockTree::open`] on a store, then [`tree::BlockTree::serve`] for each Op request.
//! Several threads may call it concurrently.
//! ```
//! use std::sync::Arc;
//! use wirefs_blocks::id::WriterId;
//! use wirefs_blocks::store::MemoryStore;
//! use wirefs_blocks::tree::{BlockTree, TreeOptions};
//! use wirefs_op::message::version::BootId;
//! use wirefs_op::{Timestamp, TreePath};
//!
//! let store = Arc::new(MemoryStore::new(1400, 1000));
//! let options = TreeOptions { ram_bytes: 0, node: WriterId(0), boot: BootId(1), uid: 0, gid: 0 };
//! let tree = BlockTree::open(store, options, Box::new(|| Timestamp { secs: 1, nanos: 0 }))?;
//! assert_eq!(tree.attach(1, &TreePath::root()).map(|attached| attached.is_read_only), Ok(false));
//! tree.create_checkpoint(b"empty").unwrap();
//! assert_eq!(tree.checkpoints().len(), 1);
//! # Ok::<(), wirefs_blocks::tree::OpenFault>(())
//! ```
//!
//! *Proved by*: unit tests in each module; random operations after which exactly the reachable blocks are
//! registered (`tree/tests`); comparison with the reference model on several stores, in `wirefs-blockfs`.
//!
//! # Source
//! Rosenblum and Ousterhout, "The design and implementation of a log-structured file system" (1992), and ZFS
//! for copy-on-write trees and snapshots; PingFS for the store interface and the order of block ids.

pub mod affected;
mod block;
mod block_set;
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
pub mod reachability;
pub mod store;
pub mod transactions;
pub mod tree;
mod view;
mod volume;
