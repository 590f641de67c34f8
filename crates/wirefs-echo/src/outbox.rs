//! Packets that wait here to be sent to one host: new ones, rebuilt ones, and those held back to keep copies apart.
//!
//! It is the only place where contents are in memory longer than it takes to pass them on, and it is bounded.

use std::collections::BTreeMap;

use bytes::Bytes;
use wirefs_op::Time;

use crate::packet::Piece;

/// What the bookkeeping of one packet is counted as, in bytes.
const ITEM_BYTES: usize = 96;

/// Packets in the order in which they are due.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    items: BTreeMap<(Time, u64), (Piece, Bytes)>,
    count: u64,
    bytes: usize,
}

impl Outbox {
    /// Adds a packet that is to be sent at `due` or later.
    pub(crate) fn push(&mut self, due: Time, piece: Piece, body: Bytes) {
        self.bytes += item_bytes(body.len());
        self.count += 1;
        self.items.insert((due, self.count), (piece, body));
    }

    /// Takes the first packet that is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Piece, Bytes)> {
        if self.due()? > now {
            return None;
        }
        let (_, (piece, body)) = self.items.pop_first()?;
        self.bytes -= item_bytes(body.len());
        Some((piece, body))
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
            outbox.push(Time(due), piece, Bytes::from_static(b"bytes"));
        }
        assert_eq!(outbox.due(), Some(Time(10)));
        assert_eq!(outbox.due_count(Time(20), 9), 3);
        assert_eq!(outbox.due_count(Time(20), 2), 2);
        let mut left = Vec::new();
        while let Some((piece, _)) = outbox.pop(Time(20)) {
            left.push(piece.lane.0);
        }
        assert_eq!(left, [1, 2, 3]);
        assert_eq!(outbox.bytes(), ITEM_BYTES + 5);
        assert_eq!(outbox.len(), 1);
    }
}
