//! Least-recently-used cache of block contents (`--ram SIZE`).

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::block::EchoBlockId;

/// Accounted overhead of one block in bytes.
const ITEM_BYTES: usize = 160;

/// Blocks in memory, up to a size.
#[derive(Debug)]
pub(crate) struct Ram {
    bytes_max: usize,
    bytes: usize,
    blocks: BTreeMap<EchoBlockId, (u64, Bytes)>,
    /// The blocks in the order of their last use.
    order: BTreeMap<u64, EchoBlockId>,
    uses: u64,
}

impl Ram {
    /// Creates an empty cache; size zero disables it.
    pub(crate) fn new(bytes_max: usize) -> Ram {
        Ram { bytes_max, bytes: 0, blocks: BTreeMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// Returns whether the cache is enabled.
    pub(crate) fn is_on(&self) -> bool {
        self.bytes_max > 0
    }

    /// Returns the memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns a block and marks it as used.
    pub(crate) fn find(&mut self, id: EchoBlockId) -> Option<Bytes> {
        let (used, body) = self.blocks.get_mut(&id)?;
        self.order.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.order.insert(self.uses, id);
        Some(body.clone())
    }

    /// Adds a block and evicts the least recently used ones. A block larger than the cache is not added.
    pub(crate) fn insert(&mut self, id: EchoBlockId, body: &Bytes) {
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
        // A slice of a larger buffer would keep all of it in memory.
        self.blocks.insert(id, (self.uses, Bytes::copy_from_slice(body)));
    }

    /// Removes a block.
    pub(crate) fn remove(&mut self, id: EchoBlockId) {
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
    fn recently_used_blocks_stay_within_the_size() {
        let mut ram = Ram::new(10 * (ITEM_BYTES + 100));
        let body = Bytes::from(vec![1; 100]);
        for number in 0..1_000u128 {
            ram.insert(EchoBlockId::from(number), &body);
            assert!(ram.find(EchoBlockId::from(0)).is_some(), "used all the time");
            assert!(ram.bytes() <= 10 * (ITEM_BYTES + 100));
        }
        let here: Vec<u128> =
            (0..1_000).filter(|&number| ram.find(EchoBlockId::from(number)).is_some()).collect();
        assert_eq!(here, [0, 991, 992, 993, 994, 995, 996, 997, 998, 999]);
        ram.remove(EchoBlockId::from(995));
        assert_eq!(ram.find(EchoBlockId::from(995)), None);
        assert_eq!(ram.bytes(), 9 * (ITEM_BYTES + 100));
    }

    #[test]
    fn cache_of_size_zero_keeps_nothing() {
        let mut ram = Ram::new(0);
        ram.insert(EchoBlockId::from(1), &Bytes::new());
        assert_eq!((ram.find(EchoBlockId::from(1)), ram.bytes()), (None, 0));
    }
}
