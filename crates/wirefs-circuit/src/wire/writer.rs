//! Writes parts into a packet.

use std::time::Duration;

use crate::address::CircuitNumber;
use crate::wire::part::{ACK, ACK_DELAY_UNIT_US, ACK_RANGE_BYTES, CREDIT, DATA, LAST_DATA};

/// Writes parts to a packet. A part that does not fit is dropped.
pub(crate) struct Writer<'a> {
    room: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(room: &'a mut [u8]) -> Writer<'a> {
        Writer { room, at: 0 }
    }

    /// The number of bytes written.
    pub(crate) fn bytes(&self) -> usize {
        self.at
    }

    /// The number of bytes left.
    pub(crate) fn left(&self) -> usize {
        self.room.len() - self.at
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(to) = self.room.get_mut(self.at..self.at + bytes.len()) {
            to.copy_from_slice(bytes);
            self.at += bytes.len();
        }
    }

    fn put_offset(&mut self, offset: u64) {
        let [a, b, c, d, e, f, _, _] = offset.to_le_bytes();
        self.put(&[a, b, c, d, e, f]);
    }

    /// Writes a part of one byte.
    pub(crate) fn mark(&mut self, kind: u8) {
        self.put(&[kind]);
    }

    /// Writes a control part of a circuit without further fields.
    pub(crate) fn control(&mut self, kind: u8, number: CircuitNumber) {
        self.put(&[kind]);
        self.put(&number.0.to_le_bytes());
    }

    pub(crate) fn credit(&mut self, number: CircuitNumber, limit: u64) {
        self.control(CREDIT, number);
        self.put_offset(limit);
    }

    /// Writes a data part; `fill` provides its `bytes` bytes. The caller checks that it fits.
    pub(crate) fn data(
        &mut self,
        number: CircuitNumber,
        offset: u64,
        bytes: usize,
        is_last: bool,
        fill: impl FnOnce(&mut [u8]),
    ) {
        self.control(if is_last { LAST_DATA } else { DATA }, number);
        self.put_offset(offset);
        self.put(&(bytes as u16).to_le_bytes());
        if let Some(room) = self.room.get_mut(self.at..self.at + bytes) {
            fill(room);
            self.at += bytes;
        }
    }

    /// Writes an ack part with as many ranges as fit (first and last packet number, in descending order).
    pub(crate) fn ack(
        &mut self,
        path: u8,
        ack_delay: Duration,
        ranges: impl IntoIterator<Item = (u64, u64)>,
    ) {
        let mut ranges = ranges.into_iter();
        let Some((first, largest)) = ranges.next() else {
            return;
        };
        let ack_delay = u64::try_from(ack_delay.as_micros()).unwrap_or(u64::MAX) / ACK_DELAY_UNIT_US;
        self.put(&[ACK, path]);
        self.put_offset(largest);
        self.put(&u16::try_from(ack_delay).unwrap_or(u16::MAX).to_le_bytes());
        self.put(&((largest - first + 1) as u16).to_le_bytes());
        let most = self.left().saturating_sub(1) / ACK_RANGE_BYTES;
        let count_at = self.at;
        self.put(&[0]);
        let (mut below, mut count) = (first, 0);
        for (first, last) in ranges.take(most) {
            self.put(&((below - 1 - last) as u16).to_le_bytes());
            self.put(&((last - first + 1) as u16).to_le_bytes());
            below = first;
            count += 1;
        }
        if let Some(field) = self.room.get_mut(count_at) {
            *field = count;
        }
    }
}
