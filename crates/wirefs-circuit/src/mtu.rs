//! Path MTU discovery: paths start with base-size packets and probe larger sizes.
//!
//! # Source
//! RFC 8899 (DPLPMTUD).

use wirefs_op::Time;

use crate::limits::{LARGE_LOST_MAX, MTU_PROBES_MAX, MTU_RETRY_WAIT, PACKET_BYTES_BASE};

/// The sizes to probe if the MTU of the card does not pass, in descending order, in bytes: common settings of
/// switches.
const SIZES: [usize; 4] = [9_000, 8_000, 4_000, 2_000];

/// The state of path MTU discovery.
#[derive(Debug)]
pub(crate) struct MtuDiscovery {
    bytes: usize,
    most: usize,
    /// The size being probed; `None` when the search is complete.
    wanted: Option<usize>,
    tries: u32,
    is_out: bool,
    not_before: Time,
    /// Consecutive losses of large packets.
    lost: u32,
}

impl MtuDiscovery {
    /// Starts discovery for a card with an MTU of `most` bytes.
    pub(crate) fn new(most: usize) -> MtuDiscovery {
        let wanted = (most > PACKET_BYTES_BASE).then_some(most);
        let bytes = most.min(PACKET_BYTES_BASE);
        MtuDiscovery { bytes, most, wanted, tries: 0, is_out: false, not_before: Time::default(), lost: 0 }
    }

    /// Returns the path MTU in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the size to probe now.
    pub(crate) fn probe(&self, now: Time) -> Option<usize> {
        self.wanted.filter(|_| !self.is_out && now >= self.not_before)
    }

    /// Returns the time of the next probe.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.wanted.filter(|_| !self.is_out).map(|_| self.not_before)
    }

    /// Records that a probe was sent.
    pub(crate) fn sent(&mut self) {
        self.is_out = true;
    }

    /// Records whether a probe arrived.
    pub(crate) fn on_probe_result(&mut self, now: Time, bytes: usize, arrived: bool) {
        self.is_out = false;
        if arrived {
            self.bytes = self.bytes.max(bytes.min(self.most));
            self.wanted = None;
            return;
        }
        self.tries += 1;
        if self.tries < MTU_PROBES_MAX {
            return;
        }
        self.tries = 0;
        let tried = self.wanted.unwrap_or(bytes);
        self.wanted = SIZES.into_iter().find(|size| *size < tried);
        if self.wanted.is_none() {
            self.wanted = Some(self.most);
            self.not_before = now + MTU_RETRY_WAIT;
        }
    }

    /// Detects a black hole: only large packets are lost, while small ones are acknowledged and the path
    /// seems healthy.
    pub(crate) fn on_large_packets(&mut self, now: Time, has_arrived: bool, lost: u32) {
        self.lost = if has_arrived { 0 } else { self.lost.saturating_add(lost) };
        if self.lost >= LARGE_LOST_MAX {
            self.fall_back(now);
        }
    }

    /// Falls back to base-size packets; larger ones are probed again later.
    pub(crate) fn fall_back(&mut self, now: Time) {
        self.is_out = false;
        self.lost = 0;
        if self.bytes > PACKET_BYTES_BASE {
            self.bytes = PACKET_BYTES_BASE;
            self.wanted = Some(self.most);
            self.tries = 0;
            self.not_before = now + MTU_RETRY_WAIT / 30;
        }
    }
}

#[cfg(test)]
mod tests;
