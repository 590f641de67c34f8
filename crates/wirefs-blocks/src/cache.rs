//! A cache of decoded blocks with a memory budget.

#[cfg(test)]
mod tests;

use crate::block::{Block, Child};
use crate::id::BlockId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The overhead of a decoded item, in bytes (estimate).
const ITEM_BYTES: usize = 64;
/// The size of a decoded child, in bytes.
const CHILD_BYTES: usize = size_of::<Child>();

/// Eviction class, the first to be evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Prefetched,
    Contents,
    Head,
    Index,
}

fn rank(block: &Block) -> Rank {
    match block {
        Block::Contents { .. } | Block::Root(_) => Rank::Contents,
        Block::Head(_) => Rank::Head,
        Block::Index { .. } => Rank::Index,
    }
}

/// Estimates the memory of a decoded block, in bytes.
fn weight(block: &Block) -> usize {
    match block {
        Block::Contents { data, .. } => data.len() + ITEM_BYTES,
        Block::Root(root) => (root.free_list.len() + 8) * 8,
        Block::Head(items) => items.iter().map(|item| item.value.len() + ITEM_BYTES).sum(),
        Block::Index { children, .. } => (children.len() + 1) * CHILD_BYTES,
    }
}

/// Blocks by id. Eviction order: unused prefetched blocks, contents, head blocks, index blocks; least
/// recently used first within each class.
#[derive(Debug)]
pub(crate) struct Cache {
    bytes_max: usize,
    state: Mutex<CacheState>,
}

/// The cached blocks and their eviction order.
#[derive(Debug, Default)]
struct CacheState {
    blocks: BTreeMap<BlockId, Slot>,
    /// Eviction order, first victim first.
    order: BTreeMap<(Rank, u64), BlockId>,
    bytes: usize,
    uses: u64,
}

/// A cached block.
#[derive(Debug)]
struct Slot {
    block: Arc<Block>,
    rank: Rank,
    used: u64,
}

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Cache {
        Cache { bytes_max, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, id: BlockId) -> Option<Arc<Block>> {
        let mut state = self.state();
        let CacheState { blocks, order, uses, .. } = &mut *state;
        let slot = blocks.get_mut(&id)?;
        order.remove(&(slot.rank, slot.used));
        *uses += 1;
        slot.rank = rank(&slot.block);
        slot.used = *uses;
        order.insert((slot.rank, slot.used), id);
        Some(Arc::clone(&slot.block))
    }

    /// Returns whether a block is cached; does not count as a use.
    pub(crate) fn has(&self, id: BlockId) -> bool {
        self.state().blocks.contains_key(&id)
    }

    /// Inserts a block that was read.
    pub(crate) fn put(&self, id: BlockId, block: Arc<Block>) {
        let rank = rank(&block);
        self.insert(id, block, rank);
    }

    /// Inserts a prefetched block, evicting only other prefetched blocks.
    pub(crate) fn put_prefetched(&self, id: BlockId, block: Arc<Block>) {
        self.insert(id, block, Rank::Prefetched);
    }

    fn insert(&self, id: BlockId, block: Arc<Block>, rank: Rank) {
        let weight = weight(&block);
        if weight > self.bytes_max {
            return;
        }
        let mut state = self.state();
        state.remove(id);
        state.uses += 1;
        let used = state.uses;
        state.order.insert((rank, used), id);
        state.blocks.insert(id, Slot { block, rank, used });
        state.bytes += weight;
        while state.bytes > self.bytes_max {
            let Some((_, id)) = state.order.pop_first() else { return };
            state.remove(id);
        }
    }

    /// Removes blocks that were deregistered.
    pub(crate) fn evict(&self, ids: &[BlockId]) {
        let mut state = self.state();
        for id in ids {
            state.remove(*id);
        }
    }

    /// The estimated memory of all cached blocks, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.state().bytes
    }
}

impl CacheState {
    fn remove(&mut self, id: BlockId) {
        if let Some(slot) = self.blocks.remove(&id) {
            self.order.remove(&(slot.rank, slot.used));
            self.bytes -= weight(&slot.block);
        }
    }
}
