//! An eventfd: pollable until it is cleared.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd in non-blocking mode.
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

impl Event {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(super) fn signal(&self) {
        // Fails only if the counter is full, and then it is set.
        let _set = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub(super) fn clear(&self) {
        // Fails only if it is not set.
        let _cleared = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
