//! What one circuit still has to send, or to see acknowledged.
//!
//! ```text
//! base ─ acknowledged in part, lost in part ─ next ─ never sent ─ end
//! ```

use std::collections::VecDeque;

use bytes::Bytes;

use crate::limits::{CHUNK_BYTES, CIRCUIT_BYTES_MAX, CREDIT_FIRST, SEND_BYTES_MAX};
use crate::ranges::Ranges;

/// Whether the end was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// More may come.
    Open,
    /// It is to be said with the last bytes, or alone.
    Wanted,
    /// It is under way.
    Sent,
    /// The peer has it.
    Arrived,
}

/// What to put into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) is_last: bool,
}

#[derive(Debug)]
pub(crate) struct Sending {
    /// Chunks with their first offsets; what is before `base` is acknowledged.
    chunks: VecDeque<(u64, Bytes)>,
    base: u64,
    next: u64,
    end: u64,
    limit: u64,
    acknowledged: Ranges,
    again: Ranges,
    ending: Ending,
}

impl Sending {
    pub(crate) fn new() -> Sending {
        Sending {
            chunks: VecDeque::new(),
            base: 0,
            next: 0,
            end: 0,
            limit: CREDIT_FIRST,
            acknowledged: Ranges::default(),
            again: Ranges::default(),
            ending: Ending::Open,
        }
    }

    /// Bytes and chunks held, as they are counted against the limit.
    pub(crate) fn held_bytes(&self) -> u64 {
        let first = self.chunks.front().map_or(self.end, |(offset, _)| *offset);
        self.end - first + CHUNK_BYTES * self.chunks.len() as u64
    }

    /// Bytes that were never sent.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.end - self.next
    }

    /// Takes bytes to be sent from the front of `bytes`, as many as there is room for. Returns how many.
    pub(crate) fn write(&mut self, bytes: &mut Bytes) -> usize {
        let room =
            SEND_BYTES_MAX.saturating_sub(self.held_bytes() + CHUNK_BYTES).min(CIRCUIT_BYTES_MAX - self.end);
        let count = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if self.ending != Ending::Open || count == 0 {
            return 0;
        }
        let chunk = bytes.split_to(count);
        self.chunks.push_back((self.end, chunk));
        self.end += count as u64;
        count
    }

    /// Whether the user may be told that there is room again.
    pub(crate) fn is_roomy(&self) -> bool {
        self.held_bytes() <= SEND_BYTES_MAX / 2
    }

    pub(crate) fn finish(&mut self) {
        if self.ending == Ending::Open {
            self.ending = Ending::Wanted;
        }
    }

    pub(crate) fn is_finishing(&self) -> bool {
        self.ending != Ending::Open
    }

    /// Whether the peer has everything, the end included.
    pub(crate) fn is_done(&self) -> bool {
        self.ending == Ending::Arrived && self.base == self.end
    }

    /// Takes a grant of the receiver.
    pub(crate) fn grant(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Whether there is something that may be sent now.
    pub(crate) fn is_ready(&self) -> bool {
        !self.again.is_empty()
            || self.next < self.end.min(self.limit)
            || self.ending == Ending::Wanted && self.next == self.end
    }

    /// Takes what is to be sent next, at most `room` bytes of it.
    pub(crate) fn take(&mut self, room: u64) -> Option<Piece> {
        let (offset, bytes) = if let Some((start, end)) = self.again.take_first() {
            let cut = end.min(start + room);
            self.again.insert(cut, end);
            (start, cut - start)
        } else {
            let bytes = self.end.min(self.limit).saturating_sub(self.next).min(room);
            let offset = self.next;
            self.next += bytes;
            (offset, bytes)
        };
        let is_said = match self.ending {
            Ending::Wanted => true,
            Ending::Sent => bytes > 0,
            Ending::Open | Ending::Arrived => false,
        };
        let is_last = is_said && offset + bytes == self.end;
        if is_last {
            self.ending = Ending::Sent;
        }
        (bytes > 0 || is_last).then_some(Piece { offset, bytes, is_last })
    }

    /// Copies what is held from `offset` on.
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

    /// Notes that a piece arrived.
    pub(crate) fn arrive(&mut self, piece: Piece) {
        let end = piece.offset + piece.bytes;
        self.again.remove(piece.offset, end);
        if piece.offset <= self.base && self.acknowledged.is_empty() {
            // In order, as nearly always.
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
            self.ending = Ending::Arrived;
        }
    }

    /// Notes that a piece was lost: what of it did not arrive otherwise is to be sent again.
    pub(crate) fn lose(&mut self, piece: Piece) {
        let (start, end) = (piece.offset.max(self.base), piece.offset + piece.bytes);
        self.again.insert(start, end);
        for (start, end) in self.acknowledged.overlaps(start, end) {
            self.again.remove(start, end);
        }
        if piece.is_last && self.ending == Ending::Sent {
            self.ending = Ending::Wanted;
        }
    }

    /// The peer said that it has everything.
    pub(crate) fn complete(&mut self) {
        if self.ending != Ending::Open {
            self.base = self.end;
            self.next = self.end;
            self.chunks.clear();
            self.again = Ranges::default();
            self.ending = Ending::Arrived;
        }
    }
}

#[cfg(test)]
mod tests;
