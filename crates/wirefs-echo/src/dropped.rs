//! Dropped blocks whose packets may still be under way: what a store without an index must know to stop sending them on.
//!
//! A block is on the list for longer than a packet is under way. When it leaves the list, whatever was sent before it
//! was dropped is refused from then on, which the time sealed in each packet tells. So a block that was dropped never
//! comes back, however late one of its packets is, and the list only has what was dropped lately.

use std::collections::{BTreeMap, VecDeque};

use wirefs_op::Time;

use crate::block::BlockId;
use crate::limits::DROPPED_MAX;

/// The blocks that were dropped lately.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    blocks: BTreeMap<BlockId, Time>,
    order: VecDeque<(Time, BlockId)>,
    /// When the block was dropped that left the list last.
    horizon: Option<Time>,
}

impl Dropped {
    /// Whether this block was dropped lately.
    pub(crate) fn contains(&self, id: BlockId) -> bool {
        self.blocks.contains_key(&id)
    }

    /// Whether a packet was sent so long ago that its block may have been dropped since.
    pub(crate) fn is_stale(&self, sent: Time) -> bool {
        self.horizon.is_some_and(|horizon| sent <= horizon)
    }

    /// Whether the list has no room.
    pub(crate) fn is_full(&self) -> bool {
        self.order.len() >= DROPPED_MAX
    }

    /// Notes a block that is dropped now.
    pub(crate) fn insert(&mut self, now: Time, id: BlockId) {
        self.blocks.insert(id, now);
        self.order.push_back((now, id));
    }

    /// Takes the blocks off the list that were dropped at this time or before.
    pub(crate) fn forget(&mut self, until: Time) {
        while self.order.front().is_some_and(|&(at, _)| at <= until) {
            let Some((at, id)) = self.order.pop_front() else {
                return;
            };
            self.horizon = Some(at);
            if self.blocks.get(&id) == Some(&at) {
                self.blocks.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_is_known_until_its_packets_are_too_old_to_be_taken() {
        let mut dropped = Dropped::default();
        dropped.insert(Time(10), BlockId::from(1));
        dropped.insert(Time(20), BlockId::from(2));
        assert!(!dropped.is_stale(Time(0)));
        dropped.forget(Time(10));
        assert!(!dropped.contains(BlockId::from(1)));
        assert!(dropped.contains(BlockId::from(2)));
        assert!(dropped.is_stale(Time(10)), "as a packet of the first may be");
        assert!(!dropped.is_stale(Time(11)));
    }

    #[test]
    fn list_is_bounded() {
        let mut dropped = Dropped::default();
        for number in 0..DROPPED_MAX {
            assert!(!dropped.is_full());
            dropped.insert(Time(1), BlockId::from(number as u128));
        }
        assert!(dropped.is_full());
        dropped.forget(Time(1));
        assert!(!dropped.is_full());
    }
}
