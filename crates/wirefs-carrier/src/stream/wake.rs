//! A one-shot flag that can be polled.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// Once set it stays set: all polls, present and future, return.
#[derive(Debug)]
pub(crate) struct Wake(OwnedFd);

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn set(&self) {
        // Fails only if the counter is full, and then the flag is set.
        let _set = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl Wake {
    /// Returns whether it is set.
    pub(crate) fn is_set(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&now)).is_ok_and(|count| count > 0)
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until `fd` is ready for `events` (or broken, or `wake` is set), at most `timeout`. Returns `false` on a
/// timeout.
pub(crate) fn wait(
    fd: impl AsFd,
    events: PollFlags,
    wake: Option<&Wake>,
    timeout: Option<Duration>,
) -> io::Result<bool> {
    let timeout = timeout.map(|time| Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    });
    let main = PollFd::from_borrowed_fd(fd.as_fd(), events);
    let polled = match wake {
        Some(wake) => poll(&mut [main, PollFd::new(wake, PollFlags::IN)], timeout.as_ref()),
        None => poll(&mut [main], timeout.as_ref()),
    };
    match polled {
        Ok(count) => Ok(count > 0),
        // The caller loops; a spurious `true` costs one more call.
        Err(Errno::INTR) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}
