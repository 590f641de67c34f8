//! Has the disk begin early with what is written in one go, so that an fsync at the end finds little left to do.
//!
//! The kernel alone would leave the disk idle until then: it begins after 30 seconds, or with a tenth of the memory.

use crate::sys;
use rustix::fd::AsFd;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The disk is given so much at once, in bytes, and as much is left for the time being, since it may change again.
const STEP_BYTES: u64 = 8 * 1024 * 1024;
/// Writes this far apart, in bytes, are of one go: those of several threads overtake each other.
const NEAR_BYTES: u64 = 4 * 1024 * 1024;

/// What was written in one go and not given to the disk yet.
#[derive(Debug, Default)]
pub(crate) struct Stream(Mutex<Go>);

#[derive(Debug, Default)]
struct Go {
    start: u64,
    end: u64,
    /// Bytes written between them.
    bytes: u64,
}

impl Stream {
    /// Notes that `count` bytes were written to `file` at `offset`, and begins with the disk where enough have come.
    ///
    /// # Cost
    /// A system call for every 8 MiB, once 16 MiB have come; it waits only for a disk whose queue is full.
    pub(super) fn wrote(&self, file: impl AsFd, offset: u64, count: u32) {
        let step = self.0.lock().unwrap_or_else(PoisonError::into_inner).wrote(offset, count.into());
        if let Some(step) = step {
            // A beginning only: whatever goes wrong is for fsync to meet and to tell.
            let _begun = sys::begin_write_back(file.as_fd(), step);
        }
    }
}

impl Go {
    /// Returns what the disk may have now.
    fn wrote(&mut self, offset: u64, count: u64) -> Option<Range<u64>> {
        let end = offset.saturating_add(count);
        let is_near =
            offset <= self.end.saturating_add(NEAR_BYTES) && self.start <= end.saturating_add(NEAR_BYTES);
        if !is_near {
            *self = Go { start: offset, end, bytes: count };
            return None;
        }
        (self.start, self.end) = (self.start.min(offset), self.end.max(end));
        self.bytes = self.bytes.saturating_add(count);
        if self.end - self.start < 2 * STEP_BYTES {
            return None;
        }
        // What was overtaken is still to come.
        let is_dense = self.bytes.saturating_add(NEAR_BYTES) >= 2 * STEP_BYTES;
        let step = self.start..self.start + STEP_BYTES;
        self.start = step.end;
        self.bytes = self.bytes.saturating_sub(STEP_BYTES).min(self.end - self.start);
        is_dense.then_some(step)
    }
}

#[cfg(test)]
mod tests;
