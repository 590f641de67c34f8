//! Writes parts into a packet.

use std::time::Duration;

use crate::address::Number;
use crate::wire::part::{ACK, ACK_RUN_BYTES, CREDIT, DATA, LAST_DATA, WAITED_UNIT_US};

/// Fills the room for content of a packet from its front. What does not fit is not written.
pub(crate) struct Writer<'a> {
    room: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(room: &'a mut [u8]) -> Writer<'a> {
        Writer { room, at: 0 }
    }

    /// Bytes written.
    pub(crate) fn bytes(&self) -> usize {
        self.at
    }

    /// Bytes that still fit.
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

    /// A part of one byte.
    pub(crate) fn mark(&mut self, kind: u8) {
        self.put(&[kind]);
    }

    /// A part that is about a circuit and says nothing else.
    pub(crate) fn notice(&mut self, kind: u8, number: Number) {
        self.put(&[kind]);
        self.put(&number.0.to_le_bytes());
    }

    pub(crate) fn credit(&mut self, number: Number, limit: u64) {
        self.notice(CREDIT, number);
        self.put_offset(limit);
    }

    /// A data part whose `bytes` bytes `fill` writes; the caller saw to it that there is room.
    pub(crate) fn data(
        &mut self,
        number: Number,
        offset: u64,
        bytes: usize,
        is_last: bool,
        fill: impl FnOnce(&mut [u8]),
    ) {
        self.notice(if is_last { LAST_DATA } else { DATA }, number);
        self.put_offset(offset);
        self.put(&(bytes as u16).to_le_bytes());
        if let Some(room) = self.room.get_mut(self.at..self.at + bytes) {
            fill(room);
            self.at += bytes;
        }
    }

    /// An acknowledgement of these runs (first and last counter, from the newest down), as many as fit.
    pub(crate) fn ack(&mut self, path: u8, waited: Duration, runs: impl IntoIterator<Item = (u64, u64)>) {
        let mut runs = runs.into_iter();
        let Some((first, largest)) = runs.next() else {
            return;
        };
        let waited = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX) / WAITED_UNIT_US;
        self.put(&[ACK, path]);
        self.put_offset(largest);
        self.put(&u16::try_from(waited).unwrap_or(u16::MAX).to_le_bytes());
        self.put(&((largest - first + 1) as u16).to_le_bytes());
        let most = self.left().saturating_sub(1) / ACK_RUN_BYTES;
        let count_at = self.at;
        self.put(&[0]);
        let (mut below, mut count) = (first, 0);
        for (first, last) in runs.take(most) {
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
