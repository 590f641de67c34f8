//! Where blocks are: in memory, on a disk, on the way to another machine and back.

mod memory;

use crate::id::BlockId;
use crate::limits::RESERVED_BLOCKS;
use crate::turns::Turns;
use bytes::Bytes;
pub use memory::MemoryStore;
use std::collections::BTreeSet;

/// A block that a store no longer has, or never had, or cannot give now ([`BlockStore::is_gone`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the block is lost")]
pub struct Lost;

/// Why a store did not take something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreFault {
    /// There is no room. Nothing of what was given was taken; ids of it may have been seen, so none is used again.
    #[error("the store is full")]
    Full,
    /// It failed. What was taken is not known.
    #[error("the store failed: {0}")]
    Broken(&'static str),
}

/// The blocks that an operation lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Those that it cannot go on without.
    pub ids: BTreeSet<BlockId>,
    /// Those that it is likely to lack next.
    pub hints: BTreeSet<BlockId>,
}

impl Wanted {
    /// Just these.
    pub fn of(ids: impl IntoIterator<Item = BlockId>) -> Wanted {
        Wanted { ids: ids.into_iter().collect(), hints: BTreeSet::new() }
    }

    /// Wants all that another does as well.
    pub fn extend(&mut self, other: Wanted) {
        self.ids.extend(other.ids);
        self.hints.extend(other.hints);
    }
}

/// How much a store holds, in blocks of its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// All blocks that it can hold.
    pub blocks: u64,
    /// Blocks that it could still take.
    pub blocks_free: u64,
    /// Those of them that are kept for changes that make room: a removal writes before it frees anything.
    pub blocks_reserved: u64,
}

impl Room {
    /// Room of which the usual part is kept for changes that make more.
    pub fn new(blocks: u64, blocks_free: u64) -> Room {
        Room { blocks, blocks_free, blocks_reserved: RESERVED_BLOCKS.min(blocks / 8) }
    }

    /// Blocks that changes may take that make no room.
    pub fn blocks_available(&self) -> u64 {
        self.blocks_free.saturating_sub(self.blocks_reserved)
    }
}

/// A block manager: keeps immutable blocks by their ids, and one pointer to the root.
///
/// Called from several threads at once; each call may block. The tree registers what is new, then switches the root,
/// then deregisters what is old: a store that keeps this order across a crash keeps a whole tree.
///
/// # Source
/// PingFS, "PingFS structure": register, retrieve, deregister.
pub trait BlockStore: Send + Sync + 'static {
    /// The largest block, in bytes; the same for as long as the store lives.
    fn payload_bytes(&self) -> usize;

    /// Takes new blocks, each under an id that was never used before.
    ///
    /// # Errors
    /// [`StoreFault::Full`]: none was taken. [`StoreFault::Broken`]: some may have been.
    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault>;

    /// Delivers each block that is wanted once, in the order in which they come by, and comes back when all have come or
    /// are given up. All are waited for at once; a hint is delivered where that costs no further wait.
    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>));

    /// Whether a block that was not delivered is gone for good. False: it may only be late. What only a late block names must
    /// stay, and what only one that is gone names can go.
    fn is_gone(&self, id: BlockId) -> bool {
        let _all_are = id;
        true
    }

    /// Lets go of blocks. Unknown ones do not matter. Whoever waits for one of them is told that it is lost.
    fn deregister(&self, ids: &[BlockId]);

    /// The ids of registered blocks after `after`, ascending, at most `count_max` of them.
    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId>;

    /// The root, if there is one yet.
    ///
    /// # Errors
    /// The store cannot tell.
    fn root(&self) -> Result<Option<BlockId>, StoreFault>;

    /// Makes another block the root, in one step: after a crash it is this one or the one before.
    ///
    /// # Errors
    /// [`StoreFault::Full`]: it is the one before. [`StoreFault::Broken`]: it is not known which of the two is the root.
    fn switch_root(&self, root: BlockId) -> Result<(), StoreFault>;

    /// Waits until the present root, and all that it reaches, is as safe as this store can make it.
    ///
    /// # Errors
    /// It is not.
    fn sync(&self) -> Result<(), StoreFault>;

    /// How full it is.
    fn room(&self) -> Room;

    /// Has `tell` called from now on by each thread that is about to wait in a call. False: it is not.
    fn before_waiting(&self, tell: fn()) -> bool {
        let _ = tell;
        false
    }

    /// Where several nodes change one tree: how they take turns.
    fn turns(&self) -> Option<&dyn Turns> {
        None
    }
}
