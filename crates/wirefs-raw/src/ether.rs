//! A socket for Ethernet frames of one type, on one interface: below IP.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use crate::error::RawError;
use crate::ether::frames::Frames;
use crate::icmp::{Blocked, Departures};
use crate::limits::{BATCH_PACKETS_MAX, ERRORS_PER_CALL_MAX, RECEIVE_BYTES_MAX};
use crate::sys::{self, Received};

pub mod frames;
pub mod ring;

/// The hardware address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HardwareAddress(pub [u8; sys::HARDWARE_BYTES]);

/// A socket that receives the frames of its type which are addressed to its interface, and nothing else.
#[derive(Debug)]
pub struct EtherSocket {
    fd: OwnedFd,
    interface: String,
    ether_type: u16,
    address: HardwareAddress,
}

/// What one receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameArrivals {
    /// Frames in the batch.
    pub frames: usize,
    /// Frames that were addressed to others, or too large for the batch; they are gone.
    pub others: usize,
    /// Whether the socket is empty now.
    pub is_drained: bool,
}

impl EtherSocket {
    /// Opens a socket for frames of this type on this interface. The interface is not made promiscuous.
    ///
    /// # Errors
    /// [`RawError::NotPermitted`] without CAP_NET_RAW, [`RawError::NoInterface`], [`RawError::NotEthernet`].
    pub fn open(interface: &str, ether_type: u16) -> Result<EtherSocket, RawError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Without a protocol it receives nothing until it is bound, so no foreign frame is ever queued.
        let fd = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(
            |errno| match errno {
                rustix::io::Errno::PERM | rustix::io::Errno::ACCESS => RawError::NotPermitted,
                other => RawError::io("open a packet socket")(other.into()),
            },
        )?;
        let missing = |_| RawError::NoInterface { interface: interface.to_owned() };
        let index = rustix::net::netdevice::name_to_index(&fd, interface).map_err(missing)?;
        sys::bind_link(fd.as_fd(), index, ether_type).map_err(RawError::io("bind a packet socket"))?;
        let address = sys::hardware_address(fd.as_fd())
            .map_err(RawError::io("ask for a hardware address"))?
            .ok_or_else(|| RawError::NotEthernet { interface: interface.to_owned() })?;
        Ok(EtherSocket { fd, interface: interface.to_owned(), ether_type, address: HardwareAddress(address) })
    }

    /// The interface's hardware address.
    pub fn address(&self) -> HardwareAddress {
        self.address
    }

    /// Bytes that the interface carries behind an Ethernet header, now.
    ///
    /// # Errors
    /// [`RawError::Io`], as when the interface is gone.
    pub fn mtu(&self) -> Result<usize, RawError> {
        sys::interface_mtu(self.fd.as_fd(), &self.interface)
            .map_err(RawError::io("ask for an interface's MTU"))
    }

    /// Asks for a receive buffer of so many bytes, as the kernel counts them: about twice the frames' own for plain ones.
    ///
    /// # Errors
    /// [`RawError::Io`] where it grants nothing; with less than wanted the kernel is content in silence.
    pub fn reserve(&self, bytes: usize) -> Result<(), RawError> {
        let wanted = bytes.min(RECEIVE_BYTES_MAX) / 2;
        // The first goes beyond the system's limit and needs CAP_NET_ADMIN.
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&self.fd, wanted)
            .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&self.fd, wanted))
            .map_err(|errno| RawError::io("have a receive buffer reserved")(errno.into()))
    }

    /// Receives frames without waiting, replacing what was in the batch.
    ///
    /// # Cost
    /// One system call.
    ///
    /// # Errors
    /// [`RawError::Io`] when the socket is broken. An interface that is down is none: nothing comes from it.
    pub fn receive(&self, frames: &mut Frames) -> Result<FrameArrivals, RawError> {
        let mut received = [Received::default(); BATCH_PACKETS_MAX];
        for _ in 0..ERRORS_PER_CALL_MAX {
            let (arena, slot_bytes) = frames.slots();
            match sys::receive(self.fd.as_fd(), arena, 0, slot_bytes, &mut received, BATCH_PACKETS_MAX) {
                Ok(count) => {
                    let taken =
                        received.iter().take(count).filter(|one| frames.note(one, self.address)).count();
                    let is_drained = count < BATCH_PACKETS_MAX;
                    return Ok(FrameArrivals { frames: taken, others: count - taken, is_drained });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(RawError::io("receive frames")(error)),
            }
        }
        Ok(FrameArrivals { frames: 0, others: 0, is_drained: true })
    }

    /// Takes the error that the socket waits to tell, as that the interface went down: until somebody takes it, a poll of the
    /// socket returns at once. For who receives through a [`Ring`](ring::Ring), which tells no errors.
    pub fn hear_error(&self) -> Option<io::Error> {
        rustix::net::sockopt::socket_error(&self.fd).ok()?.err().map(io::Error::from)
    }

    /// Sends what the batch has to be sent, as far as the kernel takes it without waiting.
    ///
    /// # Cost
    /// One system call while the kernel takes everything.
    pub fn send(&self, frames: &mut Frames) -> Departures {
        frames.write_headers(self.address, self.ether_type);
        let mut departures = Departures { packets: 0, too_large: 0, blocked: None };
        if let Some(frame) = frames.only()
            && rustix::net::send(&self.fd, frame, SendFlags::DONTWAIT).is_ok()
        {
            // The way of a request: without the lists of a batch.
            frames.take_off(1);
            departures.packets = 1;
            return departures;
        }
        let mut ranges: [Range<usize>; BATCH_PACKETS_MAX] = std::array::from_fn(|_| 0..0);
        loop {
            let count = frames.leaving(&mut ranges);
            if count == 0 {
                return departures;
            }
            match sys::send(self.fd.as_fd(), frames.arena(), ranges.get(..count).unwrap_or_default()) {
                Ok(sent) => {
                    frames.take_off(sent);
                    departures.packets += sent;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                    frames.take_off(1);
                    departures.too_large += 1;
                }
                Err(error) => {
                    let is_full = error.kind() == io::ErrorKind::WouldBlock
                        || error.raw_os_error() == Some(libc::ENOBUFS);
                    departures.blocked = Some(if is_full { Blocked::Full } else { Blocked::Refused(error) });
                    return departures;
                }
            }
        }
    }
}

/// Whether an error says something about the interface that may pass, as that it is down.
fn is_passing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted || error.raw_os_error() == Some(libc::ENETDOWN)
}

impl AsFd for EtherSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
