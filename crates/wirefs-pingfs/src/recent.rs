//! Blocks that arrived in the last two cycles, for a reader or while one waited.
//!
//! A program that opens and reads a file requests the same few blocks several times within microseconds.
//! Without this buffer each request would wait a whole cycle for the packet to return. No block stays longer
//! than two cycles (at least a millisecond, at most a second), used or not; one that was requested ahead of a
//! sequential reader, a second. So this is no cache: a later request gets what the network carries. Blocks that pass while a reader waits are likely to be needed
//! next. A block may pass before the block that names it, so a reader with all of them waits only for the
//! last.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bytes::Bytes;
use wirefs_blocks::id::BlockId;

/// Blocks in the order in which they expire.
#[derive(Debug)]
pub(crate) struct RecentBlocks {
    bytes_max: usize,
    blocks: BTreeMap<BlockId, (Bytes, Instant)>,
    order: BTreeSet<(Instant, BlockId)>,
    bytes: usize,
}

impl RecentBlocks {
    /// Creates an empty buffer of `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> RecentBlocks {
        RecentBlocks { bytes_max, blocks: BTreeMap::new(), order: BTreeSet::new(), bytes: 0 }
    }

    /// Keeps a block until `until`, unless it is there already. If there is no room, evicts the blocks that expire first.
    pub(crate) fn put(&mut self, id: BlockId, block: &Bytes, until: Instant) {
        if block.len() > self.bytes_max || self.blocks.contains_key(&id) {
            return;
        }
        self.bytes += block.len();
        self.blocks.insert(id, (block.clone(), until));
        self.order.insert((until, id));
        while self.bytes > self.bytes_max {
            let Some((_, id)) = self.order.first().copied() else { return };
            self.remove(id);
        }
    }

    /// Keeps a block until `until`, also if it is there with an earlier end.
    pub(crate) fn renew(&mut self, id: BlockId, block: &Bytes, until: Instant) {
        self.remove(id);
        self.put(id, block, until);
    }

    /// Returns a block that has not expired.
    pub(crate) fn find(&self, id: BlockId, now: Instant) -> Option<Bytes> {
        self.blocks.get(&id).filter(|(_, until)| *until > now).map(|(block, _)| block.clone())
    }

    /// Removes a block.
    pub(crate) fn remove(&mut self, id: BlockId) {
        if let Some((block, until)) = self.blocks.remove(&id) {
            self.order.remove(&(until, id));
            self.bytes -= block.len();
        }
    }

    /// Removes expired blocks.
    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some((until, id)) = self.order.first().copied()
            && until <= now
        {
            self.remove(id);
        }
    }

    /// Returns the size of the contents in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wirefs_blocks::id::WriterId;

    const BYTES_MAX: usize = 64_000;

    fn id(counter: u64) -> BlockId {
        BlockId::new(counter, WriterId(0)).unwrap()
    }

    #[test]
    fn block_expires_on_time_even_if_it_is_used() {
        let (begun, mut recent) = (Instant::now(), RecentBlocks::new(BYTES_MAX));
        let until = begun + Duration::from_millis(4);
        recent.put(id(1), &Bytes::from_static(b"block"), until);
        let late = begun + Duration::from_millis(3);
        assert_eq!(recent.find(id(1), late).as_deref(), Some(&b"block"[..]));
        recent.put(id(1), &Bytes::from_static(b"block"), until + Duration::from_millis(3));
        assert_eq!(recent.find(id(1), until), None);
        recent.expire(until);
        assert_eq!(recent.bytes(), 0);
    }

    #[test]
    fn renewed_block_stays_until_its_new_end() {
        let (begun, mut recent) = (Instant::now(), RecentBlocks::new(BYTES_MAX));
        let (until, later) = (begun + Duration::from_millis(4), begun + Duration::from_millis(9));
        recent.put(id(1), &Bytes::from_static(b"block"), until);
        recent.renew(id(1), &Bytes::from_static(b"block"), later);
        recent.expire(until);
        assert!(recent.find(id(1), until).is_some() && recent.bytes() == 5);
        recent.expire(later);
        assert_eq!((recent.find(id(1), later), recent.bytes()), (None, 0));
    }

    #[test]
    fn removed_block_is_gone_at_once_and_memory_is_bounded() {
        let (begun, mut recent) = (Instant::now(), RecentBlocks::new(BYTES_MAX));
        let until = begun + Duration::from_secs(1);
        let block = Bytes::from(vec![7; 1_000]);
        for counter in 1..=2 * (BYTES_MAX as u64 / 1_000) {
            recent.put(id(counter), &block, until);
            assert!(recent.bytes() <= BYTES_MAX);
        }
        let last = id(2 * (BYTES_MAX as u64 / 1_000));
        assert!(recent.find(id(1), begun).is_none() && recent.find(last, begun).is_some());
        recent.remove(last);
        assert!(recent.find(last, begun).is_none());
    }
}
