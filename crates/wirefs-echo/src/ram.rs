//! The contents that the user wants in memory (`--ram SIZE`): those used last.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::block::BlockId;

/// What the bookkeeping of one block is counted as, in bytes.
const ITEM_BYTES: usize = 160;

/// Blocks kept in memory, up to a size.
#[derive(Debug)]
pub(crate) struct Ram {
    bytes_max: usize,
    bytes: usize,
    blocks: BTreeMap<BlockId, (u64, Bytes)>,
    /// The blocks by when they were used.
    order: BTreeMap<u64, BlockId>,
    uses: u64,
}

impl Ram {
    /// Makes an empty cache; one of size zero keeps nothing.
    pub(crate) fn new(bytes_max: usize) -> Ram {
        Ram { bytes_max, bytes: 0, blocks: BTreeMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// Whether it keeps anything at all.
    pub(crate) fn is_on(&self) -> bool {
        self.bytes_max > 0
    }

    /// The memory that it holds, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A block, which counts as used by that.
    pub(crate) fn find(&mut self, id: BlockId) -> Option<Bytes> {
        let (used, body) = self.blocks.get_mut(&id)?;
        self.order.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.order.insert(self.uses, id);
        Some(body.clone())
    }

    /// Keeps a block, and lets go of those not used for longest. A block larger than the whole is not kept.
    pub(crate) fn insert(&mut self, id: BlockId, body: &Bytes) {
        let size = ITEM_BYTES + body.len();
        if size > self.bytes_max {
            return;
        }
        self.remove(id);
        while self.bytes + size > self.bytes_max {
            let Some((_, oldest)) = self.order.pop_first() else {
                break;
            };
            if let Some((_, body)) = self.blocks.remove(&oldest) {
                self.bytes -= ITEM_BYTES + body.len();
            }
        }
        self.uses += 1;
        self.bytes += size;
        self.order.insert(self.uses, id);
        // A part of a larger buffer would keep all of it alive.
        self.blocks.insert(id, (self.uses, Bytes::copy_from_slice(body)));
    }

    /// Lets go of a block.
    pub(crate) fn remove(&mut self, id: BlockId) {
        if let Some((used, body)) = self.blocks.remove(&id) {
            self.order.remove(&used);
            self.bytes -= ITEM_BYTES + body.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_used_last_stay_and_the_size_is_kept() {
        let mut ram = Ram::new(10 * (ITEM_BYTES + 100));
        let body = Bytes::from(vec![1; 100]);
        for number in 0..1_000u128 {
            ram.insert(BlockId::from(number), &body);
            assert!(ram.find(BlockId::from(0)).is_some(), "used all the time");
            assert!(ram.bytes() <= 10 * (ITEM_BYTES + 100));
        }
        let here: Vec<u128> =
            (0..1_000).filter(|&number| ram.find(BlockId::from(number)).is_some()).collect();
        assert_eq!(here, [0, 991, 992, 993, 994, 995, 996, 997, 998, 999]);
        ram.remove(BlockId::from(995));
        assert_eq!(ram.find(BlockId::from(995)), None);
        assert_eq!(ram.bytes(), 9 * (ITEM_BYTES + 100));
    }

    #[test]
    fn cache_of_no_size_keeps_nothing() {
        let mut ram = Ram::new(0);
        ram.insert(BlockId::from(1), &Bytes::new());
        assert_eq!((ram.find(BlockId::from(1)), ram.bytes()), (None, 0));
    }
}
