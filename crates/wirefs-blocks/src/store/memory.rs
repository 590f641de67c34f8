//! A store in memory.

use super::{BlockStore, Lost, Room, StoreFault, Wanted};
use crate::id::BlockId;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A store in memory: for tests, and for trees that need not outlive their process.
#[derive(Debug)]
pub struct MemoryStore {
    payload_bytes: usize,
    blocks_max: u64,
    state: Mutex<MemoryBlocks>,
}

/// The contents of a store.
#[derive(Clone, Debug, Default)]
struct MemoryBlocks {
    blocks: BTreeMap<BlockId, Bytes>,
    root: Option<BlockId>,
}

impl MemoryStore {
    /// Creates an empty store of at most `blocks_max` blocks of at most `payload_bytes` bytes each.
    pub fn new(payload_bytes: usize, blocks_max: u64) -> MemoryStore {
        MemoryStore { payload_bytes, blocks_max, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, MemoryBlocks> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for MemoryStore {
    /// Returns an independent copy of the store.
    fn clone(&self) -> MemoryStore {
        MemoryStore { state: Mutex::new(self.state().clone()), ..*self }
    }
}

impl BlockStore for MemoryStore {
    fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        let mut state = self.state();
        if blocks.iter().any(|(_, bytes)| bytes.len() > self.payload_bytes) {
            return Err(StoreFault::Broken("a block larger than the payload"));
        }
        if blocks.iter().any(|(id, _)| state.blocks.contains_key(id)) {
            return Err(StoreFault::Broken("a block id that was used before"));
        }
        if (state.blocks.len() + blocks.len()) as u64 > self.blocks_max {
            return Err(StoreFault::Full);
        }
        state.blocks.extend(blocks.iter().cloned());
        Ok(())
    }

    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>)) {
        for id in wanted.ids.union(&wanted.hints) {
            let block = self.state().blocks.get(id).cloned();
            deliver(*id, block.ok_or(Lost));
        }
    }

    fn deregister(&self, ids: &[BlockId]) {
        let mut state = self.state();
        for id in ids {
            state.blocks.remove(id);
        }
    }

    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.state();
        state.blocks.range((from, Bound::Unbounded)).take(count_max).map(|(id, _)| *id).collect()
    }

    fn root(&self) -> Result<Option<BlockId>, StoreFault> {
        Ok(self.state().root)
    }

    fn switch_root(&self, root: BlockId) -> Result<(), StoreFault> {
        self.state().root = Some(root);
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreFault> {
        Ok(())
    }

    fn room(&self) -> Room {
        let used = self.state().blocks.len() as u64;
        Room::new(self.blocks_max, self.blocks_max.saturating_sub(used))
    }
}
