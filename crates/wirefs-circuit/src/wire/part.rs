//! What a sealed packet consists of, part after part. Numbers are little-endian.
//!
//! ```text
//! 0 pad      one byte; fills a packet up
//! 1 ping     wants to be acknowledged
//! 2 ack      path 1 | largest counter 6 | waited, in 8 µs 2 | run 2 | count 1 | count × (gap 2, run 2)
//! 3 data     circuit 4 | offset 6 | bytes 2 | …         4 the same, and the circuit's last
//! 5 credit   circuit 4 | the offset up to which may be sent 6
//! 6 reset    circuit 4: nothing more is sent or wanted
//! 7 free     circuit 4: its place in the opener's table may be used again
//! 8 close    the group ends
//! ```
//! A run counts packets that arrived, downwards from the largest; a gap those that did not.

use std::time::Duration;

use crate::address::Number;
use crate::limits::ACK_RUNS_MAX;

pub(crate) const PAD: u8 = 0;
pub(crate) const PING: u8 = 1;
pub(crate) const ACK: u8 = 2;
pub(crate) const DATA: u8 = 3;
pub(crate) const LAST_DATA: u8 = 4;
pub(crate) const CREDIT: u8 = 5;
pub(crate) const RESET: u8 = 6;
pub(crate) const FREE: u8 = 7;
pub(crate) const CLOSE: u8 = 8;

/// A data part without its data, in bytes.
pub(crate) const DATA_HEADER_BYTES: usize = 1 + 4 + 6 + 2;
/// A credit part, in bytes.
pub(crate) const CREDIT_BYTES: usize = 1 + 4 + 6;
/// A reset or free part, in bytes.
pub(crate) const NOTICE_BYTES: usize = 1 + 4;
/// An acknowledgement of one run, in bytes.
pub(crate) const ACK_BYTES_MIN: usize = 1 + 1 + 6 + 2 + 2 + 1;
/// A further run of it, in bytes.
pub(crate) const ACK_RUN_BYTES: usize = 2 + 2;
/// The unit of how long an acknowledgement waited, in microseconds.
pub(crate) const WAITED_UNIT_US: u64 = 8;

/// One part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Ping,
    Ack(Ack<'a>),
    Data { number: Number, offset: u64, bytes: &'a [u8], is_last: bool },
    Credit { number: Number, limit: u64 },
    Reset(Number),
    Free(Number),
    Close,
}

/// Which packets of a path arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ack<'a> {
    /// The path that they came on.
    pub(crate) path: u8,
    /// The counter of the newest.
    pub(crate) largest: u64,
    /// How long it waited to be acknowledged.
    pub(crate) waited: Duration,
    first_run: u16,
    gaps: &'a [[u8; ACK_RUN_BYTES]],
}

impl Ack<'_> {
    /// The runs of counters, first and last, from the newest down; what would lie below zero is left out.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut top = Some(self.largest);
        let first = std::iter::once((0, self.first_run));
        let rest =
            self.gaps.iter().map(|[a, b, c, d]| (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d])));
        first.chain(rest).map_while(move |(gap, run)| {
            let last = top?.checked_sub(u64::from(gap))?;
            let first = last.checked_sub(u64::from(run).checked_sub(1)?)?;
            top = first.checked_sub(1);
            Some((first, last))
        })
    }
}

/// Reads the parts of an opened packet.
pub(crate) struct Parts<'a>(&'a [u8]);

/// A packet whose seal is good and whose content is nonsense: its sender is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl<'a> Parts<'a> {
    pub(crate) fn new(content: &'a [u8]) -> Parts<'a> {
        Parts(content)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn number(&mut self) -> Option<Number> {
        self.take().map(|bytes| Number(u32::from_le_bytes(bytes)))
    }

    fn short(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn offset(&mut self) -> Option<u64> {
        let [a, b, c, d, e, f] = self.take()?;
        Some(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }

    fn ack(&mut self) -> Option<Ack<'a>> {
        let [path] = self.take()?;
        let largest = self.offset()?;
        let waited = Duration::from_micros(u64::from(self.short()?) * WAITED_UNIT_US);
        let first_run = self.short()?;
        let [count] = self.take()?;
        let (gaps, rest) = self.0.split_at_checked(usize::from(count) * ACK_RUN_BYTES)?;
        self.0 = rest;
        let (gaps, _) = gaps.as_chunks();
        (gaps.len() < ACK_RUNS_MAX).then_some(Ack { path, largest, waited, first_run, gaps })
    }

    fn data(&mut self, is_last: bool) -> Option<Part<'a>> {
        let (number, offset, count) = (self.number()?, self.offset()?, self.short()?);
        let (bytes, rest) = self.0.split_at_checked(usize::from(count))?;
        self.0 = rest;
        Some(Part::Data { number, offset, bytes, is_last })
    }

    fn part(&mut self, kind: u8) -> Option<Part<'a>> {
        match kind {
            PING => Some(Part::Ping),
            ACK => self.ack().map(Part::Ack),
            DATA => self.data(false),
            LAST_DATA => self.data(true),
            CREDIT => Some(Part::Credit { number: self.number()?, limit: self.offset()? }),
            RESET => self.number().map(Part::Reset),
            FREE => self.number().map(Part::Free),
            CLOSE => Some(Part::Close),
            _ => None,
        }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Part<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let pads = self.0.iter().take_while(|byte| **byte == PAD).count();
        self.0 = self.0.get(pads..)?;
        let [kind] = self.take()?;
        let part = self.part(kind).ok_or(Malformed);
        if part.is_err() {
            self.0 = &[];
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests;
