//! How far to read ahead of one reader: not at all for a random one, as far as the wire holds for a sequential one.

/// What a first sequential read asks for beyond itself, in bytes.
const WINDOW_BYTES_MIN: u64 = 256 * 1024;
/// What is read ahead at most, in bytes; more than the wire holds at 85 ms and 1 Gbit/s.
const WINDOW_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// What is read ahead before the wire was measured to hold it: so many times what the reader has read in sequence …
const TRUST_FACTOR: u64 = 8;
/// … and at most so much, in bytes. The measure alone doubles with each round trip, as in TCP's slow start, and begins anew
/// where TCP is done with that.
const TRUST_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The kernel's own parallel reads arrive out of order by up to this much, in bytes.
const REORDER_BYTES: u64 = 1024 * 1024;
/// Who has read so much in sequence, in bytes, reads a large file once from its beginning to its end …
const LONG_RUN_BYTES: u64 = 16 * 1024 * 1024;
/// … and hardly comes back to what lies so far behind, in bytes.
const PASSED_BYTES: u64 = 4 * 1024 * 1024;

/// One open file's reading pattern.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadAhead {
    /// Where the reader has come to.
    next: u64,
    /// Bytes read in sequence.
    run: u64,
    window: u64,
    /// Up to where it was told that the reader has passed.
    passed: u64,
}

impl ReadAhead {
    /// The pattern of a reader whose data was dropped because others may have changed it: only a second read that follows the first in
    /// sequence is read ahead of. A first read of a database under each lock asks for nothing more.
    pub fn after_invalidation() -> ReadAhead {
        ReadAhead { next: u64::MAX, ..ReadAhead::default() }
    }

    /// Takes note of a read of `start..end`; tells up to where it pays to have the data, `end` if no further.
    /// `bdp_bytes` is what the wire holds: bandwidth × delay.
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
        let trusted = self.run.saturating_mul(TRUST_FACTOR).min(TRUST_BYTES_MAX);
        let most = (2 * bdp_bytes).max(trusted).clamp(4 * WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        self.window = (self.window * 2).clamp(WINDOW_BYTES_MIN, most);
        self.next.saturating_add(self.window)
    }

    /// What a reader of much in sequence has left far behind since this was last asked. It will hardly come back, and the kernel has
    /// these pages.
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
