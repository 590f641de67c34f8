//! Which packets a path carries: plain ones at first; larger ones after one of that size arrived.

use wirefs_op::Time;

use crate::limits::{LARGE_LOST_MAX, PACKET_BYTES_PLAIN, SIZE_TRIES, SIZE_WAIT};

/// Sizes that are tried where the card's own does not pass, from the largest down, in bytes: what switches are set to.
const SIZES: [usize; 4] = [9_000, 8_000, 4_000, 2_000];

#[derive(Debug)]
pub(crate) struct Sizing {
    bytes: usize,
    most: usize,
    /// The size that is being tried; none: settled.
    wanted: Option<usize>,
    tries: u32,
    is_out: bool,
    not_before: Time,
    /// Large packets that were lost since one arrived.
    lost: u32,
}

impl Sizing {
    /// For a path over a card that carries `most` bytes.
    pub(crate) fn new(most: usize) -> Sizing {
        let wanted = (most > PACKET_BYTES_PLAIN).then_some(most);
        let bytes = most.min(PACKET_BYTES_PLAIN);
        Sizing { bytes, most, wanted, tries: 0, is_out: false, not_before: Time::default(), lost: 0 }
    }

    /// The largest packet that is known to pass, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The size to be tried now.
    pub(crate) fn probe(&self, now: Time) -> Option<usize> {
        self.wanted.filter(|_| !self.is_out && now >= self.not_before)
    }

    /// When the next size is to be tried.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.wanted.filter(|_| !self.is_out).map(|_| self.not_before)
    }

    /// Notes that the wanted size was sent.
    pub(crate) fn sent(&mut self) {
        self.is_out = true;
    }

    /// Notes what became of a packet that was sent for its size.
    pub(crate) fn learn(&mut self, now: Time, bytes: usize, arrived: bool) {
        self.is_out = false;
        if arrived {
            self.bytes = self.bytes.max(bytes.min(self.most));
            self.wanted = None;
            return;
        }
        self.tries += 1;
        if self.tries < SIZE_TRIES {
            return;
        }
        self.tries = 0;
        let tried = self.wanted.unwrap_or(bytes);
        self.wanted = SIZES.into_iter().find(|size| *size < tried);
        if self.wanted.is_none() {
            self.wanted = Some(self.most);
            self.not_before = now + SIZE_WAIT;
        }
    }

    /// Notes what became of large packets with data. Where only these are lost the path seems as good as before, since small
    /// ones are acknowledged: it has changed all the same.
    pub(crate) fn watch(&mut self, now: Time, has_arrived: bool, lost: u32) {
        self.lost = if has_arrived { 0 } else { self.lost.saturating_add(lost) };
        if self.lost >= LARGE_LOST_MAX {
            self.fall_back(now);
        }
    }

    /// Goes back to plain packets: larger ones seem to pass no more. They are tried again later.
    pub(crate) fn fall_back(&mut self, now: Time) {
        self.is_out = false;
        self.lost = 0;
        if self.bytes > PACKET_BYTES_PLAIN {
            self.bytes = PACKET_BYTES_PLAIN;
            self.wanted = Some(self.most);
            self.tries = 0;
            self.not_before = now + SIZE_WAIT / 30;
        }
    }
}

#[cfg(test)]
mod tests;
