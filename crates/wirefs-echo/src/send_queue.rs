//! Packets that wait to be sent to one host: new ones, rebuilt ones, and copies held to keep them apart.
//!
//! This queue is the only place where contents stay in memory longer than a transmission takes. Its size is
//! limited.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use wirefs_op::Time;

use crate::packet::Piece;

/// Accounted overhead of one packet in bytes.
const ITEM_BYTES: usize = 128;

/// A queued packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuedPacket {
    pub(crate) piece: Piece,
    pub(crate) body: Bytes,
    /// The store number of the block, if the packet was never sent.
    pub(crate) unsent_block: Option<u64>,
}

/// Packets in the order in which they are due.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    items: BTreeMap<(Time, u64), QueuedPacket>,
    /// The store numbers of packets that were never sent, each with its insertion number.
    unsent: BTreeSet<(u64, u64)>,
    count: u64,
    bytes: usize,
}

impl SendQueue {
    /// Adds a packet to be sent at `due` or later.
    pub(crate) fn push(&mut self, due: Time, item: QueuedPacket) {
        self.bytes += queued_bytes(item.body.len());
        self.count += 1;
        self.unsent.extend(item.unsent_block.map(|unsent_block| (unsent_block, self.count)));
        self.items.insert((due, self.count), item);
    }

    /// Removes the first packet that is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<QueuedPacket> {
        if self.due()? > now {
            return None;
        }
        let ((_, place), item) = self.items.pop_first()?;
        self.bytes -= queued_bytes(item.body.len());
        if let Some(unsent_block) = item.unsent_block {
            self.unsent.remove(&(unsent_block, place));
        }
        Some(item)
    }

    /// Returns the lowest store number of a packet that was never sent.
    pub(crate) fn first_unsent(&self) -> Option<u64> {
        self.unsent.first().map(|&(unsent_block, _)| unsent_block)
    }

    /// Returns when the first packet is due.
    pub(crate) fn due(&self) -> Option<Time> {
        self.items.first_key_value().map(|(&(due, _), _)| due)
    }

    /// Returns how many packets are due, at most `max`.
    pub(crate) fn due_count(&self, now: Time, max: usize) -> usize {
        self.items.keys().take(max).take_while(|&&(due, _)| due <= now).count()
    }

    /// Returns the memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of packets.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
}

/// Returns the accounted size of a packet in bytes.
pub(crate) fn queued_bytes(body_bytes: usize) -> usize {
    ITEM_BYTES + body_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::EchoBlockId;
    use crate::packet::LaneId;

    #[test]
    fn packets_are_sent_when_due_in_order() {
        let mut send_queue = SendQueue::default();
        for (due, lane) in [(30, 0), (10, 1), (10, 2), (20, 3)] {
            let piece = Piece { id: EchoBlockId::from(1), lane: LaneId(lane), block_bytes: 5 };
            let unsent_block = (lane < 2).then_some(7 - u64::from(lane));
            send_queue
                .push(Time(due), QueuedPacket { piece, body: Bytes::from_static(b"bytes"), unsent_block });
        }
        assert_eq!(send_queue.due(), Some(Time(10)));
        assert_eq!(send_queue.due_count(Time(20), 9), 3);
        assert_eq!(send_queue.due_count(Time(20), 2), 2);
        let mut left = Vec::new();
        assert_eq!(send_queue.first_unsent(), Some(6));
        while let Some(item) = send_queue.pop(Time(20)) {
            left.push(item.piece.lane.0);
            assert_eq!(send_queue.first_unsent(), Some(7), "a packet sent before is not new");
        }
        assert_eq!(left, [1, 2, 3]);
        assert_eq!(send_queue.bytes(), ITEM_BYTES + 5);
        assert_eq!(send_queue.len(), 1);
    }
}
