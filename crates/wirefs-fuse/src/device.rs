//! The `/dev/fuse` descriptors of a mount.

#[cfg(test)]
mod tests;

use crate::answer::{Encoded, encode_error, put_header};
use crate::name_cache::KernelNameCache;
use crate::{abi, sys};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io;
use std::io::{IoSlice, IoSliceMut};
use wirefs_client::call::CallId;
use wirefs_op::Errno;

/// The path of the FUSE device.
pub(crate) const DEVICE_PATH: &str = "/dev/fuse";

/// An open `/dev/fuse` that is bound to a mount. When its last descriptor is closed, the mount is dead: calls fail
/// with `ENOTCONN` until it is unmounted.
#[derive(Debug)]
pub struct Device(OwnedFd);

impl From<OwnedFd> for Device {
    fn from(fd: OwnedFd) -> Device {
        Device(fd)
    }
}

impl From<Device> for OwnedFd {
    fn from(device: Device) -> OwnedFd {
        device.0
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) fn open_device() -> io::Result<OwnedFd> {
    rustix::fs::open(DEVICE_PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

/// The result of a read.
#[derive(Debug)]
pub(crate) enum Received {
    /// A request of so many bytes.
    Request(usize),
    /// No request.
    Nothing,
    /// The mount is gone.
    Unmounted,
    /// The connection was aborted.
    Aborted,
}

/// All descriptors of one mount. A request must be answered through the descriptor that it was read from.
#[derive(Debug)]
pub(crate) struct Connection {
    first: OwnedFd,
    others: Vec<OwnedFd>,
    /// Whether reads do not block.
    is_nonblocking: bool,
    name_cache: KernelNameCache,
}

impl Connection {
    /// Clones the descriptor until there are `lanes` of them, so that threads do not contend for one queue. If
    /// cloning fails, all threads share the existing ones. `is_nonblocking`: reads do not block.
    ///
    /// # Errors
    /// Those of setting that mode.
    pub(crate) fn new(device: Device, lanes: usize, is_nonblocking: bool) -> io::Result<Connection> {
        let Device(first) = device;
        let set_nonblocking = |fd: &OwnedFd| match is_nonblocking {
            true => rustix::fs::fcntl_setfl(fd, rustix::fs::fcntl_getfl(fd)? | OFlags::NONBLOCK),
            false => io::Result::Ok(()),
        };
        let join = || {
            let fresh = open_device()?;
            sys::join_device(&fresh, first.as_fd())?;
            set_nonblocking(&fresh)?;
            io::Result::Ok(fresh)
        };
        set_nonblocking(&first)?;
        let others = (1..lanes).map_while(|_| join().ok()).collect();
        Ok(Connection { first, others, is_nonblocking, name_cache: KernelNameCache::default() })
    }

    /// The names in the kernel's cache.
    pub(crate) fn name_cache(&self) -> &KernelNameCache {
        &self.name_cache
    }

    /// The descriptor of a lane, or the first one if the lane has none.
    fn lane(&self, lane: usize) -> &OwnedFd {
        lane.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.first)
    }

    /// Waits for a request and reads it.
    ///
    /// # Errors
    /// As [`Connection::take`], and those of waiting.
    pub(crate) fn receive(&self, lane: usize, head: &mut [u8], rest: &mut [u8]) -> io::Result<Received> {
        if !self.is_nonblocking {
            return self.take(lane, head, rest);
        }
        let mut fds = [PollFd::new(self.lane(lane), PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) => self.take(lane, head, rest),
            Err(io::Errno::INTR) => Ok(Received::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Reads a request, without blocking if that was set. `rest` takes the bytes that do not fit into `head`.
    ///
    /// # Errors
    /// Those of reading that mean neither "no request" nor the end.
    pub(crate) fn take(&self, lane: usize, head: &mut [u8], rest: &mut [u8]) -> io::Result<Received> {
        match io::readv(self.lane(lane), &mut [IoSliceMut::new(head), IoSliceMut::new(rest)]) {
            // A signal; the request was withdrawn before the read; another thread took it.
            Err(io::Errno::INTR | io::Errno::NOENT | io::Errno::AGAIN) => Ok(Received::Nothing),
            Err(io::Errno::NODEV) => Ok(Received::Unmounted),
            Err(io::Errno::CONNABORTED) => Ok(Received::Aborted),
            Err(error) => Err(error),
            Ok(0) => Ok(Received::Unmounted),
            Ok(bytes) => Ok(Received::Request(bytes)),
        }
    }

    /// Writes an answer. It is normal that the caller is gone. If the kernel refuses the answer, `EIO` is sent, so
    /// that no caller waits forever.
    pub(crate) fn send(&self, lane: usize, call: CallId, answer: &Encoded) {
        let fd = self.lane(lane);
        let written = if answer.data.is_empty() {
            io::write(fd, &answer.head)
        } else {
            io::writev(fd, &[IoSlice::new(&answer.head), IoSlice::new(&answer.data)])
        };
        match written {
            Ok(_) | Err(io::Errno::NOENT | io::Errno::NODEV | io::Errno::CONNABORTED) => {}
            Err(_) => drop(io::write(fd, &encode_error(call, Errno::Io))),
        }
    }

    /// Writes a notification.
    pub(crate) fn send_notification(&self, message: &[u8]) -> io::Result<()> {
        io::write(&self.first, message).map(drop)
    }

    /// Makes the kernel repeat an interrupt. The kernel searches for the interrupted request only among those that
    /// were read from the same descriptor, so each descriptor is tried. If none has it, it was answered.
    pub(crate) fn request_interrupt_again(&self, interrupt: CallId) {
        let mut message = [0; abi::OUT_HEADER_BYTES];
        put_header(&mut message, -i32::from(Errno::WouldBlock.code()), interrupt.0, 0);
        for fd in std::iter::once(&self.first).chain(&self.others) {
            if io::write(fd, &message).is_ok() {
                return;
            }
        }
    }
}
