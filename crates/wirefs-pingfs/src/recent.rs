//! Blocks that arrived in the last two round trips, for a reader or while one waited.
//!
//! A program that opens and reads a file requests the same few blocks several times within microseconds.
//! Without this buffer each request would wait a whole round trip for the packet to return. No block stays
//! longer than two round trips (or a millisecond, if those are shorter), used or not. So this is no cache: a
//! later request gets what the network carries. Blocks that pass while a reader waits are likely to be needed
//! next. A block may pass before the block that names it, so a reader with all of them waits only for the
//! last.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;
use wirefs_blocks::id::BlockId;

/// Blocks in the order of arrival.
#[derive(Debug)]
pub(crate) struct RecentBlocks {
    bytes_max: usize,
    blocks: BTreeMap<BlockId, (Bytes, Instant)>,
    order: VecDeque<(Instant, BlockId)>,
    bytes: usize,
}

impl RecentBlocks {
    /// Creates an empty buffer of `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> RecentBlocks {
        RecentBlocks { bytes_max, blocks: BTreeMap::new(), order: VecDeque::new(), bytes: 0 }
    }

    /// Keeps a block until `until`, unless it is there already. Evicts the oldest blocks if there is no room.
    pub(crate) fn put(&mut self, id: BlockId, block: &Bytes, until: Instant) {
        if block.len() > self.bytes_max || self.blocks.contains_key(&id) {
            return;
        }
        self.bytes += block.len();
        self.blocks.insert(id, (block.clone(), until));
        self.order.push_back((until, id));
        while self.bytes > self.bytes_max {
            let Some((_, id)) = self.order.pop_front() else { return };
            self.remove(id);
        }
    }

    /// Returns a block that has not expired.
    pub(crate) fn find(&self, id: BlockId, now: Instant) -> Option<Bytes> {
        self.blocks.get(&id).filter(|(_, until)| *until > now).map(|(block, _)| block.clone())
    }

    /// Removes a block.
    pub(crate) fn remove(&mut self, id: BlockId) {
        if let Some((block, _)) = self.blocks.remove(&id) {
            self.bytes -= block.len();
        }
    }

    /// Removes expired blocks. A block may leave slightly later than one that arrived before it.
    pub(crate) fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            if let Some((until, id)) = self.order.pop_front()
                && self.blocks.get(&id).is_some_and(|(_, own)| *own == until)
            {
                self.remove(id);
            }
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
