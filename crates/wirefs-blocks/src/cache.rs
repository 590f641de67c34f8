//! The blocks that are kept in memory for the next operation, within a budget.

#[cfg(test)]
mod tests;

use crate::block::{Block, Child};
use crate::id::BlockId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a decoded item takes beside its bytes, in bytes, about.
const ITEM_BYTES: usize = 64;
/// What a decoded child takes, in bytes.
const CHILD_BYTES: usize = size_of::<Child>();

/// How much a block is worth: those that lead to many others most, those that only came along least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Unused,
    Contents,
    Head,
    Link,
}

fn rank(block: &Block) -> Rank {
    match block {
        Block::Contents { .. } | Block::Root(_) => Rank::Contents,
        Block::Head(_) => Rank::Head,
        Block::Link { .. } => Rank::Link,
    }
}

/// The memory that a decoded block takes, in bytes, about.
fn weight(block: &Block) -> usize {
    match block {
        Block::Contents { data, .. } => data.len() + ITEM_BYTES,
        Block::Root(root) => (root.doomed.len() + 8) * 8,
        Block::Head(items) => items.iter().map(|item| item.value.len() + ITEM_BYTES).sum(),
        Block::Link { children, .. } => (children.len() + 1) * CHILD_BYTES,
    }
}

/// Blocks by id. Where the budget is used up, what nobody has used yet goes first, then contents, then heads, then links, and of each kind what was used
/// longest ago.
#[derive(Debug)]
pub(crate) struct Cache {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    blocks: BTreeMap<BlockId, Slot>,
    /// What to let go of, the first first.
    order: BTreeMap<(Rank, u64), BlockId>,
    bytes: usize,
    uses: u64,
}

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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, id: BlockId) -> Option<Arc<Block>> {
        let mut state = self.state();
        let State { blocks, order, uses, .. } = &mut *state;
        let slot = blocks.get_mut(&id)?;
        order.remove(&(slot.rank, slot.used));
        *uses += 1;
        slot.rank = rank(&slot.block);
        slot.used = *uses;
        order.insert((slot.rank, slot.used), id);
        Some(Arc::clone(&slot.block))
    }

    /// Whether a block is there, without making use of it.
    pub(crate) fn has(&self, id: BlockId) -> bool {
        self.state().blocks.contains_key(&id)
    }

    /// Keeps a block that was used.
    pub(crate) fn put(&self, id: BlockId, block: Arc<Block>) {
        let rank = rank(&block);
        self.insert(id, block, rank);
    }

    /// Keeps a block that only came along, while there is room for it.
    pub(crate) fn put_unused(&self, id: BlockId, block: Arc<Block>) {
        self.insert(id, block, Rank::Unused);
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

    /// Forgets blocks that are used no more.
    pub(crate) fn forget(&self, ids: &[BlockId]) {
        let mut state = self.state();
        for id in ids {
            state.remove(*id);
        }
    }

    /// Bytes that its blocks take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.state().bytes
    }
}

impl State {
    fn remove(&mut self, id: BlockId) {
        if let Some(slot) = self.blocks.remove(&id) {
            self.order.remove(&(slot.rank, slot.used));
            self.bytes -= weight(&slot.block);
        }
    }
}
