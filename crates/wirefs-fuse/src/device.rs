//! The descriptors of a mount: requests are read from them, answers written to them.

#[cfg(test)]
mod tests;

use crate::answer::{Encoded, encode_error, put_header};
use crate::beliefs::Beliefs;
use crate::{abi, sys};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io;
use std::io::{IoSlice, IoSliceMut};
use wirefs_client::call::CallId;
use wirefs_op::Errno;

/// Where the kernel offers its interface.
pub(crate) const DEVICE_PATH: &str = "/dev/fuse";

/// An open `/dev/fuse` that a mount is bound to. When its last descriptor closes, the mount is dead: its callers get
/// `ENOTCONN` until it is unmounted.
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

/// What came of reading.
#[derive(Debug)]
pub(crate) enum Received {
    /// A request of so many bytes.
    Request(usize),
    /// Nothing this time.
    Nothing,
    /// The mount is gone.
    Unmounted,
    /// The connection was cut by force.
    Aborted,
}

/// All descriptors of one mount. A request must be answered through the one that it was read from.
#[derive(Debug)]
pub(crate) struct Connection {
    first: OwnedFd,
    others: Vec<OwnedFd>,
    /// Whether taking a request waits for none.
    looks: bool,
    beliefs: Beliefs,
}

impl Connection {
    /// Joins descriptors until there are `lanes` of them, so that threads do not contend for one queue. Where the kernel
    /// or the rights forbid that, all threads share what there is. With `looks` a request is taken without waiting for one.
    ///
    /// # Errors
    /// Those of asking for that.
    pub(crate) fn new(device: Device, lanes: usize, looks: bool) -> io::Result<Connection> {
        let Device(first) = device;
        let waits_not = |fd: &OwnedFd| match looks {
            true => rustix::fs::fcntl_setfl(fd, rustix::fs::fcntl_getfl(fd)? | OFlags::NONBLOCK),
            false => io::Result::Ok(()),
        };
        let join = || {
            let fresh = open_device()?;
            sys::join_device(&fresh, first.as_fd())?;
            waits_not(&fresh)?;
            io::Result::Ok(fresh)
        };
        waits_not(&first)?;
        let others = (1..lanes).map_while(|_| join().ok()).collect();
        Ok(Connection { first, others, looks, beliefs: Beliefs::default() })
    }

    /// What the kernel may believe.
    pub(crate) fn beliefs(&self) -> &Beliefs {
        &self.beliefs
    }

    /// The descriptor of a lane; the first one for lanes without one of their own.
    fn lane(&self, lane: usize) -> &OwnedFd {
        lane.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.first)
    }

    /// Waits for a request, and takes it.
    ///
    /// # Errors
    /// As [`Connection::take`], and those of waiting.
    pub(crate) fn receive(&self, lane: usize, head: &mut [u8], rest: &mut [u8]) -> io::Result<Received> {
        if !self.looks {
            return self.take(lane, head, rest);
        }
        let mut waits = [PollFd::new(self.lane(lane), PollFlags::IN)];
        match poll(&mut waits, None) {
            Ok(_) => self.take(lane, head, rest),
            Err(io::Errno::INTR) => Ok(Received::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Takes a request, if there is one, or waits for one where it is not to look; what `head` does not take goes to `rest`.
    ///
    /// # Errors
    /// Those of reading that mean neither "nothing now" nor the end.
    pub(crate) fn take(&self, lane: usize, head: &mut [u8], rest: &mut [u8]) -> io::Result<Received> {
        match io::readv(self.lane(lane), &mut [IoSliceMut::new(head), IoSliceMut::new(rest)]) {
            // A signal; the request was taken back before it was read; another thread took it.
            Err(io::Errno::INTR | io::Errno::NOENT | io::Errno::AGAIN) => Ok(Received::Nothing),
            Err(io::Errno::NODEV) => Ok(Received::Unmounted),
            Err(io::Errno::CONNABORTED) => Ok(Received::Aborted),
            Err(error) => Err(error),
            Ok(0) => Ok(Received::Unmounted),
            Ok(bytes) => Ok(Received::Request(bytes)),
        }
    }

    /// Writes an answer. That the caller is gone by now is normal; an answer that the kernel refuses becomes `EIO`, so
    /// that nobody waits for ever.
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

    /// Writes a message that answers nothing.
    pub(crate) fn send_unasked(&self, message: &[u8]) -> io::Result<()> {
        io::write(&self.first, message).map(drop)
    }

    /// Has the kernel send an interrupt anew. It looks for the interrupted request only among those that were read
    /// from the descriptor which says so, and that may be any: each is tried. When none knows it, it was answered.
    pub(crate) fn ask_interrupt_again(&self, interrupt: CallId) {
        let mut message = [0; abi::OUT_HEADER_BYTES];
        put_header(&mut message, -i32::from(Errno::WouldBlock.code()), interrupt.0, 0);
        for fd in std::iter::once(&self.first).chain(&self.others) {
            if io::write(fd, &message).is_ok() {
                return;
            }
        }
    }
}
