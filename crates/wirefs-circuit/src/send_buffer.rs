//! The send buffer of a circuit: unsent, unacknowledged and lost data.
//!
//! ```text
//! base ─ partly acknowledged, partly lost ─ next ─ never sent ─ end
//! ```

use std::collections::VecDeque;

use bytes::Bytes;

use crate::byte_ranges::ByteRanges;
use crate::limits::{CHUNK_BYTES, CIRCUIT_BYTES_MAX, INITIAL_CREDIT, SEND_BYTES_MAX};

/// The state of the end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndState {
    /// More data may be written.
    Open,
    /// The end must be sent, with the last bytes or alone.
    Pending,
    /// The end is in flight.
    Sent,
    /// The peer acknowledged the end.
    Acknowledged,
}

/// A range of data for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataRange {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) is_last: bool,
}

/// The send side of a circuit.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    /// Chunks with their offsets. Data before `base` is acknowledged.
    chunks: VecDeque<(u64, Bytes)>,
    base: u64,
    next: u64,
    end: u64,
    limit: u64,
    acknowledged: ByteRanges,
    retransmit: ByteRanges,
    end_state: EndState,
}

impl SendBuffer {
    pub(crate) fn new() -> SendBuffer {
        SendBuffer {
            chunks: VecDeque::new(),
            base: 0,
            next: 0,
            end: 0,
            limit: INITIAL_CREDIT,
            acknowledged: ByteRanges::default(),
            retransmit: ByteRanges::default(),
            end_state: EndState::Open,
        }
    }

    /// The size of the buffer including the overhead of chunks, in bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        let first = self.chunks.front().map_or(self.end, |(offset, _)| *offset);
        self.end - first + CHUNK_BYTES * self.chunks.len() as u64
    }

    /// The number of bytes that were never sent.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.end - self.next
    }

    /// Buffers bytes from the front of `bytes`, as many as fit. Returns their number.
    pub(crate) fn write(&mut self, bytes: &mut Bytes) -> usize {
        let room =
            SEND_BYTES_MAX.saturating_sub(self.held_bytes() + CHUNK_BYTES).min(CIRCUIT_BYTES_MAX - self.end);
        let count = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if self.end_state != EndState::Open || count == 0 {
            return 0;
        }
        let chunk = bytes.split_to(count);
        self.chunks.push_back((self.end, chunk));
        self.end += count as u64;
        count
    }

    /// Returns whether enough space is free to report [`Writable`](crate::CircuitOutput::Writable).
    pub(crate) fn has_write_room(&self) -> bool {
        self.held_bytes() <= SEND_BYTES_MAX / 2
    }

    pub(crate) fn finish(&mut self) {
        if self.end_state == EndState::Open {
            self.end_state = EndState::Pending;
        }
    }

    pub(crate) fn is_finishing(&self) -> bool {
        self.end_state != EndState::Open
    }

    /// Returns whether the peer has acknowledged everything, including the end.
    pub(crate) fn is_done(&self) -> bool {
        self.end_state == EndState::Acknowledged && self.base == self.end
    }

    /// Raises the credit limit.
    pub(crate) fn grant(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Returns whether something can be sent now.
    pub(crate) fn is_ready(&self) -> bool {
        !self.retransmit.is_empty()
            || self.next < self.end.min(self.limit)
            || self.end_state == EndState::Pending && self.next == self.end
    }

    /// Returns the next range to send, lost data first, with at most `room` bytes.
    pub(crate) fn take(&mut self, room: u64) -> Option<DataRange> {
        let (offset, bytes) = if let Some((start, end)) = self.retransmit.take_first() {
            let cut = end.min(start + room);
            self.retransmit.insert(cut, end);
            (start, cut - start)
        } else {
            let bytes = self.end.min(self.limit).saturating_sub(self.next).min(room);
            let offset = self.next;
            self.next += bytes;
            (offset, bytes)
        };
        let is_end_sent = match self.end_state {
            EndState::Pending => true,
            EndState::Sent => bytes > 0,
            EndState::Open | EndState::Acknowledged => false,
        };
        let is_last = is_end_sent && offset + bytes == self.end;
        if is_last {
            self.end_state = EndState::Sent;
        }
        (bytes > 0 || is_last).then_some(DataRange { offset, bytes, is_last })
    }

    /// Copies buffered data from `offset` on.
    pub(crate) fn copy(&self, offset: u64, room: &mut [u8]) {
        let first = self.chunks.partition_point(|(start, chunk)| start + chunk.len() as u64 <= offset);
        let (mut at, mut room) = (offset, room);
        for (start, chunk) in self.chunks.iter().skip(first) {
            let from = chunk.get((at - start) as usize..).unwrap_or_default();
            let count = from.len().min(room.len());
            let (now, later) = room.split_at_mut(count);
            now.copy_from_slice(from.get(..count).unwrap_or_default());
            at += count as u64;
            room = later;
            if room.is_empty() {
                break;
            }
        }
    }

    /// Processes the acknowledgement of a range.
    pub(crate) fn acknowledge(&mut self, piece: DataRange) {
        let end = piece.offset + piece.bytes;
        self.retransmit.remove(piece.offset, end);
        if piece.offset <= self.base && self.acknowledged.is_empty() {
            // The common case: in order.
            self.base = self.base.max(end);
        } else if end > self.base {
            self.acknowledged.insert(piece.offset.max(self.base), end);
        }
        if let Some((_, end)) = self.acknowledged.first().filter(|(start, _)| *start <= self.base) {
            self.acknowledged.take_first();
            self.base = end;
        }
        while self.chunks.front().is_some_and(|(start, chunk)| start + chunk.len() as u64 <= self.base) {
            self.chunks.pop_front();
        }
        if piece.is_last {
            self.end_state = EndState::Acknowledged;
        }
    }

    /// Queues a lost range for retransmission, except parts that were acknowledged meanwhile.
    pub(crate) fn mark_lost(&mut self, piece: DataRange) {
        let (start, end) = (piece.offset.max(self.base), piece.offset + piece.bytes);
        self.retransmit.insert(start, end);
        for (start, end) in self.acknowledged.overlaps(start, end) {
            self.retransmit.remove(start, end);
        }
        if piece.is_last && self.end_state == EndState::Sent {
            self.end_state = EndState::Pending;
        }
    }

    /// Marks everything as acknowledged: the peer freed the circuit.
    pub(crate) fn acknowledge_all(&mut self) {
        if self.end_state != EndState::Open {
            self.base = self.end;
            self.next = self.end;
            self.chunks.clear();
            self.retransmit = ByteRanges::default();
            self.end_state = EndState::Acknowledged;
        }
    }
}

#[cfg(test)]
mod tests;
