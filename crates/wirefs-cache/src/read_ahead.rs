//! Read-ahead for one open file: none for a random reader, up to twice the bandwidth-delay product for a
//! sequential one.

/// The read-ahead at the first sequential read, in bytes.
const WINDOW_BYTES_MIN: u64 = 256 * 1024;
/// The maximal read-ahead in bytes; more than the bandwidth-delay product at 85 ms and 1 Gbit/s.
const WINDOW_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Before the path is measured, the read-ahead is at most this multiple of the sequentially read bytes …
const RAMP_FACTOR: u64 = 8;
/// … and at most this many bytes. The estimate alone doubles with each round trip, as in TCP's slow start,
/// and would start only when TCP has finished its own.
const RAMP_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The kernel's parallel reads arrive out of order by up to this many bytes.
const REORDER_BYTES: u64 = 1024 * 1024;
/// A reader of this many sequential bytes reads a large file once from start to end …
const LONG_RUN_BYTES: u64 = 16 * 1024 * 1024;
/// … and is unlikely to return to data this many bytes before its position.
const PASSED_BYTES: u64 = 4 * 1024 * 1024;

/// The reading pattern of one open file.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadAhead {
    /// The expected offset of the next sequential read.
    next: u64,
    /// The number of bytes read sequentially.
    run: u64,
    window: u64,
    /// The end of the range that [`take_passed`](Self::take_passed) has returned.
    passed: u64,
}

impl ReadAhead {
    /// Creates the pattern of a reader whose data was invalidated because of other clients' changes. Only a
    /// second, sequential read starts read-ahead: a database that reads its first page under each lock must
    /// not prefetch.
    pub fn after_invalidation() -> ReadAhead {
        ReadAhead { next: u64::MAX, ..ReadAhead::default() }
    }

    /// Records an access to `start..end`. Returns the offset up to which data should be fetched, at least `end`.
    /// `bdp_bytes` is the bandwidth-delay product.
    pub fn advance(&mut self, start: u64, end: u64, bdp_bytes: u64) -> u64 {
        let near = start <= self.next.saturating_add(REORDER_BYTES)
            && start.saturating_add(REORDER_BYTES) >= self.next;
        let sequential = if self.run == 0 {
            start == self.next
        } else {
            near && end.saturating_add(REORDER_BYTES) >= self.next
        };
        if !sequential {
            *self = ReadAhead { next: end, run: 0, window: 0, passed: end };
            return end;
        }
        self.run = self.run.saturating_add(end - start);
        self.next = self.next.max(end);
        let ramp = self.run.saturating_mul(RAMP_FACTOR).min(RAMP_BYTES_MAX);
        let most = (2 * bdp_bytes).max(ramp).clamp(4 * WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        self.window = (self.window * 2).clamp(WINDOW_BYTES_MIN, most);
        self.next.saturating_add(self.window)
    }

    /// Returns the range that a long sequential reader has passed since the last call. The reader is unlikely
    /// to return, and the kernel has these pages.
    pub fn take_passed(&mut self) -> Option<(u64, u64)> {
        let to = self.next.saturating_sub(PASSED_BYTES);
        if self.run < LONG_RUN_BYTES || to <= self.passed {
            return None;
        }
        let from = std::mem::replace(&mut self.passed, to);
        Some((from, to))
    }
}

#[cfg(test)]
mod tests;
