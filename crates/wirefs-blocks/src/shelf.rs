//! The blocks at hand for one operation.

use crate::block::Block;
use crate::cache::Cache;
use crate::halt::Halt;
use crate::id::BlockId;
use crate::store::{Lost, Wanted};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What one operation has seen. It stays until the operation ends, so that an operation that is called again comes
/// further each time, whatever the cache lets go of.
#[derive(Debug)]
pub(crate) struct Shelf<'a> {
    cache: &'a Cache,
    seen: RefCell<BTreeMap<BlockId, Result<Arc<Block>, Lost>>>,
    /// What came along and was not looked at yet.
    hinted: RefCell<BTreeMap<BlockId, Arc<Block>>>,
    /// What was not delivered.
    missed: RefCell<Vec<BlockId>>,
}

/// What cannot be decoded is not the block that was registered, which is lost then.
fn decoded(delivered: Result<Bytes, Lost>) -> Result<Arc<Block>, Lost> {
    delivered.and_then(|bytes| Block::decode(bytes).map(Arc::new).map_err(|_| Lost))
}

impl<'a> Shelf<'a> {
    pub(crate) fn new(cache: &'a Cache) -> Shelf<'a> {
        Shelf { cache, seen: RefCell::default(), hinted: RefCell::default(), missed: RefCell::default() }
    }

    /// A block.
    ///
    /// # Errors
    /// It is needed, or lost.
    pub(crate) fn block(&self, id: BlockId) -> Result<Arc<Block>, Halt> {
        if let Some(seen) = self.seen.borrow().get(&id) {
            return seen.clone().map_err(|Lost| Halt::Lost(id));
        }
        let hinted = self.hinted.borrow_mut().remove(&id);
        let block = self.cache.get(id).or(hinted).ok_or_else(|| Halt::need(id))?;
        self.seen.borrow_mut().insert(id, Ok(Arc::clone(&block)));
        Ok(block)
    }

    /// Whether a block is at hand, without making use of it.
    pub(crate) fn has(&self, id: BlockId) -> bool {
        self.seen.borrow().contains_key(&id) || self.hinted.borrow().contains_key(&id) || self.cache.has(id)
    }

    /// The blocks that no store delivered, when the operation is over.
    pub(crate) fn into_missed(self) -> Vec<BlockId> {
        self.missed.into_inner()
    }

    /// Takes what a store delivered.
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

    /// Takes a block that came along although nobody waited for it.
    pub(crate) fn supply_hint(&self, id: BlockId, bytes: Bytes) {
        if let Ok(block) = decoded(Ok(bytes)) {
            self.cache.put_unused(id, Arc::clone(&block));
            self.hinted.borrow_mut().insert(id, block);
        }
    }

    /// Counts what a store did not deliver as lost.
    pub(crate) fn give_up(&self, wanted: &Wanted) {
        for id in &wanted.ids {
            self.seen.borrow_mut().entry(*id).or_insert(Err(Lost));
        }
    }
}
