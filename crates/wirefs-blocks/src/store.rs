//! The interface of block stores. Blocks may be in memory, on a disk, or in transit between machines.

mod memory;

use crate::id::BlockId;
use crate::limits::RESERVED_BLOCKS;
use crate::transactions::Transactions;
use bytes::Bytes;
pub use memory::MemoryStore;
use std::collections::BTreeSet;

/// A block that a store never had, no longer has, or cannot deliver now ([`BlockStore::is_gone`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the block is lost")]
pub struct Lost;

/// The reason for which a store rejected a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreFault {
    /// No space. Nothing was stored. Other nodes may have seen the ids, so they must not be reused.
    #[error("the store is full")]
    Full,
    /// The store failed. It is unknown which blocks it stored.
    #[error("the store failed: {0}")]
    Broken(&'static str),
}

/// A request for blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Required blocks.
    pub ids: BTreeSet<BlockId>,
    /// Blocks that are likely to be required next.
    pub hints: BTreeSet<BlockId>,
}

impl Wanted {
    /// Requests these blocks, without hints.
    pub fn of(ids: impl IntoIterator<Item = BlockId>) -> Wanted {
        Wanted { ids: ids.into_iter().collect(), hints: BTreeSet::new() }
    }

    /// Adds the blocks of another request.
    pub fn extend(&mut self, other: Wanted) {
        self.ids.extend(other.ids);
        self.hints.extend(other.hints);
    }
}

/// The capacity of a store, in blocks of its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// The total number of blocks.
    pub blocks: u64,
    /// The number of free blocks.
    pub blocks_free: u64,
    /// The free blocks that are reserved for changes that free space: a removal writes before it frees
    /// anything.
    pub blocks_reserved: u64,
}

impl Room {
    /// Returns the capacity with the default reservation.
    pub fn new(blocks: u64, blocks_free: u64) -> Room {
        Room { blocks, blocks_free, blocks_reserved: RESERVED_BLOCKS.min(blocks / 8) }
    }

    /// The free blocks available to changes that do not free space.
    pub fn blocks_available(&self) -> u64 {
        self.blocks_free.saturating_sub(self.blocks_reserved)
    }
}

/// A store of immutable blocks by id, with one root pointer.
///
/// Called from several threads; each call may block. The tree registers new blocks, then switches the root,
/// then deregisters old blocks. A store that preserves this order across a crash preserves a consistent tree.
///
/// # Source
/// PingFS, "PingFS structure": register, retrieve, deregister.
pub trait BlockStore: Send + Sync + 'static {
    /// The maximum size of a block, in bytes. Constant for the lifetime of the store.
    fn payload_bytes(&self) -> usize;

    /// The file data beyond a read to request as hints, in bytes. 0: a hint costs as much as a later request.
    fn read_ahead_bytes(&self) -> u64 {
        0
    }

    /// Stores new blocks, each with an id that was never used before.
    ///
    /// # Errors
    /// [`StoreFault::Full`]: none was stored. [`StoreFault::Broken`]: some may have been.
    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault>;

    /// Delivers each requested block once, in any order, and returns when all have arrived or are lost. The
    /// requests run in parallel. A hint is delivered only if that adds no wait.
    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>));

    /// Returns whether an undelivered block is gone for good. `false`: it may be delayed. Blocks below a
    /// delayed block must stay; blocks only below one that is gone can be freed.
    fn is_gone(&self, id: BlockId) -> bool {
        let _all_are = id;
        true
    }

    /// Removes blocks; unknown ids are ignored. A concurrent retrieval of a removed block reports it as lost.
    fn deregister(&self, ids: &[BlockId]);

    /// Returns at most `count_max` ids of registered blocks after `after`, in ascending order.
    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId>;

    /// Returns the root; `None` if there is none yet.
    ///
    /// # Errors
    /// The root is unknown.
    fn root(&self) -> Result<Option<BlockId>, StoreFault>;

    /// Switches the root atomically: after a crash it is the new root or the previous one.
    ///
    /// # Errors
    /// [`StoreFault::Full`]: the previous root is kept. [`StoreFault::Broken`]: either may be the root.
    fn switch_root(&self, root: BlockId) -> Result<(), StoreFault>;

    /// Makes the root and all blocks below it durable, as far as this store can.
    ///
    /// # Errors
    /// They are not durable.
    fn sync(&self) -> Result<(), StoreFault>;

    /// The capacity and free space.
    fn room(&self) -> Room;

    /// Registers a callback that each thread calls before it blocks in this store. Returns `false` if not
    /// supported.
    fn before_waiting(&self, notify: fn()) -> bool {
        let _ = notify;
        false
    }

    /// The transactions of a tree that several nodes change; `None` for a store of one node.
    fn transactions(&self) -> Option<&dyn Transactions> {
        None
    }
}
