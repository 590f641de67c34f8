//! The blocks that one operation has retrieved.

use crate::block::Block;
use crate::cache::Cache;
use crate::halt::Halt;
use crate::id::BlockId;
use crate::store::{Lost, Wanted};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The blocks that one operation has read. They are held until it ends, so that each retry of the operation
/// gets further even if the cache evicts them.
#[derive(Debug)]
pub(crate) struct BlockSet<'a> {
    cache: &'a Cache,
    seen: RefCell<BTreeMap<BlockId, Result<Arc<Block>, Lost>>>,
    /// Prefetched blocks that were not read yet.
    hinted: RefCell<BTreeMap<BlockId, Arc<Block>>>,
    /// Blocks that the store did not deliver.
    missed: RefCell<Vec<BlockId>>,
}

/// Decodes a delivered block. A block that cannot be decoded counts as lost.
fn decoded(delivered: Result<Bytes, Lost>) -> Result<Arc<Block>, Lost> {
    delivered.and_then(|bytes| Block::decode(bytes).map(Arc::new).map_err(|_| Lost))
}

impl<'a> BlockSet<'a> {
    pub(crate) fn new(cache: &'a Cache) -> BlockSet<'a> {
        BlockSet { cache, seen: RefCell::default(), hinted: RefCell::default(), missed: RefCell::default() }
    }

    /// Returns a block.
    ///
    /// # Errors
    /// `Need`: it must be retrieved first. `Lost`: the store does not have it.
    pub(crate) fn block(&self, id: BlockId) -> Result<Arc<Block>, Halt> {
        if let Some(seen) = self.seen.borrow().get(&id) {
            return seen.clone().map_err(|Lost| Halt::Lost(id));
        }
        let hinted = self.hinted.borrow_mut().remove(&id);
        let block = self.cache.get(id).or(hinted).ok_or_else(|| Halt::need(id))?;
        self.seen.borrow_mut().insert(id, Ok(Arc::clone(&block)));
        Ok(block)
    }

    /// Returns whether a block is available without a wait; does not count as a use.
    pub(crate) fn has(&self, id: BlockId) -> bool {
        self.seen.borrow().contains_key(&id) || self.hinted.borrow().contains_key(&id) || self.cache.has(id)
    }

    /// Returns the blocks that the store did not deliver.
    pub(crate) fn into_missed(self) -> Vec<BlockId> {
        self.missed.into_inner()
    }

    /// Adds the result of a retrieval.
    pub(crate) fn supply(&self, id: BlockId, delivered: Result<Bytes, Lost>) {
        if delivered.is_err() {
            self.missed.borrow_mut().push(id);
        }
        let block = decoded(delivered);
        if let Ok(block) = &block {
            self.cache.put(id, Arc::clone(block));
        }
        self.seen.borrow_mut().insert(id, block);
    }

    /// Adds a block that the store delivered as a hint.
    pub(crate) fn supply_hint(&self, id: BlockId, bytes: Bytes) {
        if let Ok(block) = decoded(Ok(bytes)) {
            self.cache.put_prefetched(id, Arc::clone(&block));
            self.hinted.borrow_mut().insert(id, block);
        }
    }

    /// Marks all requested blocks that were not delivered as lost.
    pub(crate) fn give_up(&self, wanted: &Wanted) {
        for id in &wanted.ids {
            self.seen.borrow_mut().entry(*id).or_insert(Err(Lost));
        }
    }
}
