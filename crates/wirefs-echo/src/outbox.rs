//! Packets that wait here to be sent to one host: new ones, rebuilt ones, and those held back to keep copies apart.
//!
//! It is the only place where contents are in memory longer than it takes to pass them on, and it is bounded.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use wirefs_op::Time;

use crate::packet::Piece;

/// What the bookkeeping of one packet is counted as, in bytes.
const ITEM_BYTES: usize = 128;

/// A packet that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) piece: Piece,
    pub(crate) body: Bytes,
    /// Of one that was never sent: the number of its block among those that were kept.
    pub(crate) kept: Option<u64>,
}

/// Packets in the order in which they are due.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    items: BTreeMap<(Time, u64), Item>,
    /// The numbers of those that were never sent, each with its place in the order of adding.
    unsent: BTreeSet<(u64, u64)>,
    count: u64,
    bytes: usize,
}

impl Outbox {
    /// Adds a packet that is to be sent at `due` or later.
    pub(crate) fn push(&mut self, due: Time, item: Item) {
        self.bytes += item_bytes(item.body.len());
        self.count += 1;
        self.unsent.extend(item.kept.map(|kept| (kept, self.count)));
        self.items.insert((due, self.count), item);
    }

    /// Takes the first packet that is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Item> {
        if self.due()? > now {
            return None;
        }
        let ((_, place), item) = self.items.pop_first()?;
        self.bytes -= item_bytes(item.body.len());
        if let Some(kept) = item.kept {
            self.unsent.remove(&(kept, place));
        }
        Some(item)
    }

    /// The number of the first kept block of which a packet was never sent and waits here.
    pub(crate) fn first_unsent(&self) -> Option<u64> {
        self.unsent.first().map(|&(kept, _)| kept)
    }

    /// When the first packet is due.
    pub(crate) fn due(&self) -> Option<Time> {
        self.items.first_key_value().map(|(&(due, _), _)| due)
    }

    /// Packets that are due, `most` at most.
    pub(crate) fn due_count(&self, now: Time, most: usize) -> usize {
        self.items.keys().take(most).take_while(|&&(due, _)| due <= now).count()
    }

    /// The memory that it holds, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
}

/// What a packet with a body of so many bytes counts as.
pub(crate) fn item_bytes(body_bytes: usize) -> usize {
    ITEM_BYTES + body_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockId;
    use crate::packet::LaneId;

    #[test]
    fn packets_leave_when_they_are_due_in_order() {
        let mut outbox = Outbox::default();
        for (due, lane) in [(30, 0), (10, 1), (10, 2), (20, 3)] {
            let piece = Piece { id: BlockId::from(1), lane: LaneId(lane), block_bytes: 5 };
            let kept = (lane < 2).then_some(7 - u64::from(lane));
            outbox.push(Time(due), Item { piece, body: Bytes::from_static(b"bytes"), kept });
        }
        assert_eq!(outbox.due(), Some(Time(10)));
        assert_eq!(outbox.due_count(Time(20), 9), 3);
        assert_eq!(outbox.due_count(Time(20), 2), 2);
        let mut left = Vec::new();
        assert_eq!(outbox.first_unsent(), Some(6));
        while let Some(item) = outbox.pop(Time(20)) {
            left.push(item.piece.lane.0);
            assert_eq!(outbox.first_unsent(), Some(7), "one that was sent before is not new");
        }
        assert_eq!(left, [1, 2, 3]);
        assert_eq!(outbox.bytes(), ITEM_BYTES + 5);
        assert_eq!(outbox.len(), 1);
    }
}
