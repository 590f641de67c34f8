//! Tombstones of dropped blocks, for a store without an index.
//!
//! A tombstone lives longer than any packet is in flight. When a tombstone expires, packets sent before that
//! drop become stale: the sealed send time identifies them. So a dropped block never comes back, however late
//! a packet is, and the list stays short.

use std::collections::{BTreeMap, VecDeque};

use wirefs_op::Time;

use crate::block::EchoBlockId;
use crate::limits::DROPPED_MAX;

/// The blocks that were dropped recently.
#[derive(Debug, Default)]
pub(crate) struct DroppedBlocks {
    blocks: BTreeMap<EchoBlockId, Time>,
    order: VecDeque<(Time, EchoBlockId)>,
    /// The drop time of the tombstone that expired last.
    horizon: Option<Time>,
}

impl DroppedBlocks {
    /// Returns whether this block was dropped recently.
    pub(crate) fn contains(&self, id: EchoBlockId) -> bool {
        self.blocks.contains_key(&id)
    }

    /// Returns whether a packet sent at this time may belong to a block dropped since.
    pub(crate) fn is_stale(&self, sent: Time) -> bool {
        self.horizon.is_some_and(|horizon| sent <= horizon)
    }

    /// Returns whether the list is full.
    pub(crate) fn is_full(&self) -> bool {
        self.order.len() >= DROPPED_MAX
    }

    /// Adds a tombstone for a block dropped now.
    pub(crate) fn insert(&mut self, now: Time, id: EchoBlockId) {
        self.blocks.insert(id, now);
        self.order.push_back((now, id));
    }

    /// Removes the tombstones of blocks dropped at this time or before.
    pub(crate) fn expire(&mut self, until: Time) {
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
    fn tombstone_expires_when_its_packets_are_stale() {
        let mut dropped = DroppedBlocks::default();
        dropped.insert(Time(10), EchoBlockId::from(1));
        dropped.insert(Time(20), EchoBlockId::from(2));
        assert!(!dropped.is_stale(Time(0)));
        dropped.expire(Time(10));
        assert!(!dropped.contains(EchoBlockId::from(1)));
        assert!(dropped.contains(EchoBlockId::from(2)));
        assert!(dropped.is_stale(Time(10)), "a packet of the first block");
        assert!(!dropped.is_stale(Time(11)));
    }

    #[test]
    fn list_is_bounded() {
        let mut dropped = DroppedBlocks::default();
        for number in 0..DROPPED_MAX {
            assert!(!dropped.is_full());
            dropped.insert(Time(1), EchoBlockId::from(number as u128));
        }
        assert!(dropped.is_full());
        dropped.expire(Time(1));
        assert!(!dropped.is_full());
    }
}
