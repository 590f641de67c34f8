//! The journal of a running mount: where the next entry stands, and which records are still needed.

use crate::entry::HEAD_BYTES;
use crate::limits::{BODY_BYTES_MAX, SEGMENT_BYTES};
use std::collections::VecDeque;

/// Where an entry is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// In which segment.
    pub segment: u64,
    /// Its first byte there.
    pub offset: u64,
    /// Whether the segment begins with it, and is to be made.
    pub opens: bool,
}

/// What cannot be written: the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// Numbers go up.
    #[error("change {number} comes behind change {last}")]
    Order {
        /// The one.
        number: u64,
        /// The other.
        last: u64,
    },
    /// No message is so long.
    #[error("a change of {bytes} bytes is longer than any message")]
    Length {
        /// So long.
        bytes: usize,
    },
}

/// How much of the journal is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Changes that the server's disk does not have, as far as is known.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them that the server has not answered.
    pub unanswered_records: u64,
    /// Their bytes.
    pub unanswered_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    number: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    number: u64,
    /// The highest change in it; 0 where there is none.
    highest: u64,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Live {
    header_bytes: u64,
    /// Those that are needed, in order.
    records: VecDeque<Kept>,
    bytes: u64,
    /// Those that are there but for the last, in order.
    full: VecDeque<Segment>,
    current: Segment,
    used: u64,
    last: u64,
}

impl Live {
    /// A journal whose first segment, number 1, has a header of so many bytes, as all that follow have.
    pub fn new(header_bytes: u64) -> Live {
        Live {
            header_bytes,
            records: VecDeque::new(),
            bytes: 0,
            full: VecDeque::new(),
            current: Segment { number: 1, highest: 0 },
            used: header_bytes,
            last: 0,
        }
    }

    /// The place for a record with a body of so many bytes.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn record(&mut self, number: u64, body_bytes: usize) -> Result<Placed, Misuse> {
        if number <= self.last {
            return Err(Misuse::Order { number, last: self.last });
        }
        if body_bytes > BODY_BYTES_MAX {
            return Err(Misuse::Length { bytes: body_bytes });
        }
        let placed = self.place(body_bytes);
        self.last = number;
        self.current.highest = number;
        self.records.push_back(Kept { number, bytes: body_bytes as u64 });
        self.bytes += body_bytes as u64;
        Ok(placed)
    }

    /// The place for a note with a body of so many bytes.
    pub fn note(&mut self, body_bytes: usize) -> Placed {
        self.place(body_bytes)
    }

    fn place(&mut self, body_bytes: usize) -> Placed {
        let length = (HEAD_BYTES + body_bytes) as u64;
        let opens = self.used + length > SEGMENT_BYTES && self.used > self.header_bytes;
        if opens {
            self.turn();
        }
        let offset = self.used;
        self.used += length;
        Placed { segment: self.current.number, offset, opens }
    }

    /// Begins another segment, whatever room there is: hands back its number.
    pub fn turn(&mut self) -> u64 {
        self.full.push_back(self.current);
        self.current = Segment { number: self.current.number + 1, highest: 0 };
        self.used = self.header_bytes;
        self.current.number
    }

    /// The changes below a number are not needed any more: hands back the segments that may go, in order.
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

    /// Whether nothing in it is needed.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The lowest change that is needed.
    pub fn first(&self) -> Option<u64> {
        self.records.front().map(|first| first.number)
    }

    /// How much is needed, where the server has answered all changes below a number.
    ///
    /// # Cost
    /// A step for each record that is not answered.
    pub fn figures(&self, answered: u64) -> Figures {
        let unanswered = self.records.iter().rev().take_while(|kept| kept.number >= answered);
        let (count, sum) = unanswered.fold((0, 0), |(count, sum), kept| (count + 1, sum + kept.bytes));
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
