//! The time for which a thread waits for a processor, as the kernel's scheduler counts it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The size of a line of `schedstat`, at most.
const LINE_BYTES_MAX: usize = 96;

/// The waits of one thread for a processor.
pub(super) struct ProcessorWait {
    /// `schedstat` of the thread; none where the kernel has no such file.
    file: Option<File>,
    last: Duration,
}

impl ProcessorWait {
    /// Begins to count the waits of the calling thread.
    pub(super) fn of_this_thread() -> ProcessorWait {
        let mut wait =
            ProcessorWait { file: File::open("/proc/thread-self/schedstat").ok(), last: Duration::ZERO };
        wait.since_last();
        wait
    }

    /// Returns the time for which the thread has waited since the last call.
    ///
    /// # Cost
    /// One system call.
    pub(super) fn since_last(&mut self) -> Duration {
        let mut line = [0; LINE_BYTES_MAX];
        let read = self.file.as_ref().and_then(|file| file.read_at(&mut line, 0).ok()).unwrap_or_default();
        let Some(total) = line.get(..read).and_then(waited) else { return Duration::ZERO };
        let since = total.saturating_sub(self.last);
        self.last = total;
        since
    }
}

/// Returns the second field of a line of `schedstat`: nanoseconds on a run queue.
fn waited(line: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(line).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_field_of_schedstat_is_the_wait() {
        assert_eq!(waited(b"110206 94518 2\n"), Some(Duration::from_nanos(94518)));
        assert_eq!((waited(b""), waited(b"7 x")), (None, None));
    }

    #[test]
    fn wait_never_counts_twice() {
        let mut wait = ProcessorWait { file: None, last: Duration::ZERO };
        assert_eq!(wait.since_last(), Duration::ZERO);
        let mut wait = ProcessorWait::of_this_thread();
        let before = wait.last;
        let since = wait.since_last();
        assert_eq!(before + since, wait.last);
    }
}
