//! Blocks that just came by for a reader, or while one waited, for two round trips.
//!
//! A program that opens and reads a file asks for the same few blocks several times within microseconds. Without this each
//! of these questions would wait until the packet has come round again, a whole round trip later. Nothing stays longer than
//! two of them (or a millisecond, where a round trip is shorter), used or not, so it is no cache: who asks again later gets what
//! the network carries. And what passes while somebody waits is what is needed next, as like as not: a block that names
//! others comes before, between or behind them, and who hears all of them waits for the last one only.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;
use wirefs_blocks::id::BlockId;

/// Blocks in the order in which they came.
#[derive(Debug)]
pub(crate) struct Recent {
    bytes_max: usize,
    blocks: BTreeMap<BlockId, (Bytes, Instant)>,
    order: VecDeque<(Instant, BlockId)>,
    bytes: usize,
}

impl Recent {
    /// Makes an empty one for so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Recent {
        Recent { bytes_max, blocks: BTreeMap::new(), order: VecDeque::new(), bytes: 0 }
    }

    /// Keeps a block until `until`, if it is not there already; the oldest go where there is no room.
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

    /// A block that is still there.
    pub(crate) fn find(&self, id: BlockId, now: Instant) -> Option<Bytes> {
        self.blocks.get(&id).filter(|(_, until)| *until > now).map(|(block, _)| block.clone())
    }

    /// Forgets one.
    pub(crate) fn remove(&mut self, id: BlockId) {
        if let Some((block, _)) = self.blocks.remove(&id) {
            self.bytes -= block.len();
        }
    }

    /// Forgets those whose time is over. A block may leave a little later than one that came before it.
    pub(crate) fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            if let Some((until, id)) = self.order.pop_front()
                && self.blocks.get(&id).is_some_and(|(_, own)| *own == until)
            {
                self.remove(id);
            }
        }
    }

    /// The contents that it holds, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wirefs_blocks::id::TreeNodeId;

    const BYTES_MAX: usize = 64_000;

    fn id(counter: u64) -> BlockId {
        BlockId::new(counter, TreeNodeId(0)).unwrap()
    }

    #[test]
    fn block_stays_until_its_time_is_over_and_use_makes_it_no_longer() {
        let (begun, mut recent) = (Instant::now(), Recent::new(BYTES_MAX));
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
    fn dropped_block_is_forgotten_at_once_and_memory_is_bounded() {
        let (begun, mut recent) = (Instant::now(), Recent::new(BYTES_MAX));
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
