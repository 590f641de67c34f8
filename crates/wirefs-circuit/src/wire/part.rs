//! The parts of a sealed packet (the frames of QUIC). Little-endian.
//!
//! ```text
//! 0 pad      one byte of padding
//! 1 ping     elicits an acknowledgement
//! 2 ack      path 1 | largest packet number 6 | ACK delay in 8 µs 2 | first range 2 | count 1 | (gap 2, range 2)*
//! 3 data     circuit 4 | offset 6 | bytes 2 | …         4 the same, with the end of the circuit
//! 5 credit   circuit 4 | flow-control limit 6
//! 6 reset    circuit 4: abort of both directions
//! 7 free     circuit 4: the slot in the opener's table may be reused
//! 8 close    the group is closed
//! ```
//! A range counts received packets, downwards from the largest; a gap counts missing ones.

use std::time::Duration;

use crate::address::CircuitNumber;
use crate::limits::ACK_RANGES_MAX;

pub(crate) const PAD: u8 = 0;
pub(crate) const PING: u8 = 1;
pub(crate) const ACK: u8 = 2;
pub(crate) const DATA: u8 = 3;
pub(crate) const LAST_DATA: u8 = 4;
pub(crate) const CREDIT: u8 = 5;
pub(crate) const RESET: u8 = 6;
pub(crate) const FREE: u8 = 7;
pub(crate) const CLOSE: u8 = 8;

/// The size of a data part without its data, in bytes.
pub(crate) const DATA_HEADER_BYTES: usize = 1 + 4 + 6 + 2;
/// The size of a credit part, in bytes.
pub(crate) const CREDIT_BYTES: usize = 1 + 4 + 6;
/// The size of a reset or free part, in bytes.
pub(crate) const CONTROL_BYTES: usize = 1 + 4;
/// The size of an ack part with one range, in bytes.
pub(crate) const ACK_BYTES_MIN: usize = 1 + 1 + 6 + 2 + 2 + 1;
/// The size of each further range, in bytes.
pub(crate) const ACK_RANGE_BYTES: usize = 2 + 2;
/// The unit of the ACK delay, in microseconds.
pub(crate) const ACK_DELAY_UNIT_US: u64 = 8;

/// A decoded part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Ping,
    Ack(Ack<'a>),
    Data { number: CircuitNumber, offset: u64, bytes: &'a [u8], is_last: bool },
    Credit { number: CircuitNumber, limit: u64 },
    Reset(CircuitNumber),
    Free(CircuitNumber),
    Close,
}

/// An acknowledgement of packets of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ack<'a> {
    /// The path on which they were received.
    pub(crate) path: u8,
    /// The largest packet number.
    pub(crate) largest: u64,
    /// The time between receipt of the largest packet and the acknowledgement.
    pub(crate) ack_delay: Duration,
    first_range: u16,
    gaps: &'a [[u8; ACK_RANGE_BYTES]],
}

impl Ack<'_> {
    /// Returns the ACK ranges (first and last packet number) in descending order; ranges below zero are
    /// dropped.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut top = Some(self.largest);
        let first = std::iter::once((0, self.first_range));
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

/// Decodes the parts of a packet.
pub(crate) struct Parts<'a>(&'a [u8]);

/// An authentic packet that does not decode: its sender is faulty.
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

    fn number(&mut self) -> Option<CircuitNumber> {
        self.take().map(|bytes| CircuitNumber(u32::from_le_bytes(bytes)))
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
        let ack_delay = Duration::from_micros(u64::from(self.short()?) * ACK_DELAY_UNIT_US);
        let first_range = self.short()?;
        let [count] = self.take()?;
        let (gaps, rest) = self.0.split_at_checked(usize::from(count) * ACK_RANGE_BYTES)?;
        self.0 = rest;
        let (gaps, _) = gaps.as_chunks();
        (gaps.len() < ACK_RANGES_MAX).then_some(Ack { path, largest, ack_delay, first_range, gaps })
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
