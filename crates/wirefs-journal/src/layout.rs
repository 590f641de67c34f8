//! The positions of entries in the journal of a running mount, and the records that are still needed.

use crate::entry::HEAD_BYTES;
use crate::limits::{BODY_BYTES_MAX, SEGMENT_BYTES};
use std::collections::VecDeque;

/// The position of a new entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The number of its segment.
    pub segment: u64,
    /// The offset of its first byte there.
    pub offset: u64,
    /// Whether it is the first entry of its segment, which must be created.
    pub opens: bool,
}

/// A record that cannot be written, by the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// The numbers do not go up.
    #[error("change {number} comes after change {last}")]
    Order {
        /// The number of the record.
        number: u64,
        /// The number of the last record.
        last: u64,
    },
    /// The record is longer than any message.
    #[error("a change of {bytes} bytes is longer than any message")]
    Length {
        /// The length of the record.
        bytes: usize,
    },
}

/// The size of the needed part of a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Changes that are not known to be on the server's disk.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The changes among them that the server has not answered.
    pub unanswered_records: u64,
    /// Their bytes.
    pub unanswered_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct PendingRecord {
    number: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    number: u64,
    /// The highest change number in it; 0 if it has none.
    highest: u64,
}

/// The journal of a running mount.
#[derive(Clone, Debug)]
pub struct Layout {
    header_bytes: u64,
    /// Needed records, in order.
    records: VecDeque<PendingRecord>,
    bytes: u64,
    /// Present segments except the last, in order.
    full: VecDeque<Segment>,
    current: Segment,
    used: u64,
    last: u64,
}

impl Layout {
    /// Returns a journal without entries. The header of each segment has `header_bytes`.
    pub fn new(header_bytes: u64) -> Layout {
        Layout {
            header_bytes,
            records: VecDeque::new(),
            bytes: 0,
            full: VecDeque::new(),
            current: Segment { number: 1, highest: 0 },
            used: header_bytes,
            last: 0,
        }
    }

    /// Returns the position for a record with a body of `body_bytes`.
    ///
    /// # Errors
    /// Fails if the record cannot be written.
    pub fn record(&mut self, number: u64, body_bytes: usize) -> Result<Placement, Misuse> {
        if number <= self.last {
            return Err(Misuse::Order { number, last: self.last });
        }
        if body_bytes > BODY_BYTES_MAX {
            return Err(Misuse::Length { bytes: body_bytes });
        }
        let placed = self.place(body_bytes);
        self.last = number;
        self.current.highest = number;
        self.records.push_back(PendingRecord { number, bytes: body_bytes as u64 });
        self.bytes += body_bytes as u64;
        Ok(placed)
    }

    /// Returns the position for a note with a body of `body_bytes`.
    pub fn note(&mut self, body_bytes: usize) -> Placement {
        self.place(body_bytes)
    }

    fn place(&mut self, body_bytes: usize) -> Placement {
        let length = (HEAD_BYTES + body_bytes) as u64;
        let opens = self.used + length > SEGMENT_BYTES && self.used > self.header_bytes;
        if opens {
            self.begin_segment();
        }
        let offset = self.used;
        self.used += length;
        Placement { segment: self.current.number, offset, opens }
    }

    /// Begins another segment, even if the current one has space. Returns its number.
    pub fn begin_segment(&mut self) -> u64 {
        self.full.push_back(self.current);
        self.current = Segment { number: self.current.number + 1, highest: 0 };
        self.used = self.header_bytes;
        self.current.number
    }

    /// Drops the changes below a number. Returns the segments that may be removed, in order.
    pub fn forget(&mut self, below: u64) -> Vec<u64> {
        while let Some(first) = self.records.front().filter(|first| first.number < below) {
            self.bytes -= first.bytes;
            self.records.pop_front();
        }
        let mut gone = Vec::new();
        while let Some(first) = self.full.front().filter(|first| first.highest < below) {
            gone.push(first.number);
            self.full.pop_front();
        }
        gone
    }

    /// Returns whether no change is needed.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the lowest needed change.
    pub fn first(&self) -> Option<u64> {
        self.records.front().map(|first| first.number)
    }

    /// Returns the size of the needed part if the server has answered all changes below a number.
    ///
    /// # Cost
    /// One step for each unanswered record.
    pub fn figures(&self, answered: u64) -> Figures {
        let unanswered = self.records.iter().rev().take_while(|pending| pending.number >= answered);
        let (count, sum) = unanswered.fold((0, 0), |(count, sum), pending| (count + 1, sum + pending.bytes));
        Figures {
            records: self.records.len() as u64,
            bytes: self.bytes,
            unanswered_records: count,
            unanswered_bytes: sum,
        }
    }
}

#[cfg(test)]
mod tests;
