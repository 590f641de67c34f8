//! Starts write-back early for sequential writes, so that an fsync at the end finds little left to do.
//!
//! The kernel alone starts write-back after 30 seconds, or when a tenth of the memory is dirty.

use crate::sys;
use rustix::fd::AsFd;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Bytes per write-back. As many are left for the time being, since they may change again.
const STEP_BYTES: u64 = 8 * 1024 * 1024;
/// The gap in bytes within a sequential run: writes of several threads overtake each other.
const RUN_GAP_BYTES: u64 = 4 * 1024 * 1024;

/// A sequential run of writes without write-back.
#[derive(Debug, Default)]
pub(crate) struct Stream(Mutex<Run>);

#[derive(Debug, Default)]
struct Run {
    start: u64,
    end: u64,
    /// Bytes written between them.
    bytes: u64,
}

impl Stream {
    /// Notes a write of `count` bytes to `file` at `offset`, and starts write-back if there is enough.
    ///
    /// # Cost
    /// A system call for every 8 MiB, after the first 16 MiB; it blocks only while the disk's queue is full.
    pub(super) fn written(&self, file: impl AsFd, offset: u64, count: u32) {
        let step = self.0.lock().unwrap_or_else(PoisonError::into_inner).written(offset, count.into());
        if let Some(step) = step {
            // A failure is ignored here, because fsync will report it.
            let _begun = sys::begin_write_back(file.as_fd(), step);
        }
    }
}

impl Run {
    /// Returns the range for write-back.
    fn written(&mut self, offset: u64, count: u64) -> Option<Range<u64>> {
        let end = offset.saturating_add(count);
        let is_near = offset <= self.end.saturating_add(RUN_GAP_BYTES)
            && self.start <= end.saturating_add(RUN_GAP_BYTES);
        if !is_near {
            *self = Run { start: offset, end, bytes: count };
            return None;
        }
        (self.start, self.end) = (self.start.min(offset), self.end.max(end));
        self.bytes = self.bytes.saturating_add(count);
        if self.end - self.start < 2 * STEP_BYTES {
            return None;
        }
        // Overtaken writes are still missing.
        let is_dense = self.bytes.saturating_add(RUN_GAP_BYTES) >= 2 * STEP_BYTES;
        let step = self.start..self.start + STEP_BYTES;
        self.start = step.end;
        self.bytes = self.bytes.saturating_sub(STEP_BYTES).min(self.end - self.start);
        is_dense.then_some(step)
    }
}

#[cfg(test)]
mod tests;
