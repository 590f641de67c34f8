//! Packet sockets for Ethernet frames of one type on one interface.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use crate::error::RawError;
use crate::ether::frames::Frames;
use crate::icmp::{Blocked, Departures};
use crate::limits::{BATCH_PACKETS_MAX, ERRORS_PER_CALL_MAX, RECEIVE_BYTES_MAX};
use crate::sys::{self, ReceivedDatagram};

pub mod frames;
pub mod ring;

/// The hardware address (MAC) of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HardwareAddress(pub [u8; sys::HARDWARE_BYTES]);

/// A socket that receives the frames of its type that are addressed to its interface.
#[derive(Debug)]
pub struct EtherSocket {
    fd: OwnedFd,
    interface: String,
    ether_type: u16,
    address: HardwareAddress,
}

/// The result of a receive call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameArrivals {
    /// Frames in the batch.
    pub frames: usize,
    /// Discarded frames: addressed to other interfaces, or too large for the batch.
    pub discarded: usize,
    /// Whether the socket is now empty.
    pub is_drained: bool,
}

impl EtherSocket {
    /// Opens a socket for frames of this type on this interface, without promiscuous mode.
    ///
    /// # Errors
    /// [`RawError::NotPermitted`] without CAP_NET_RAW, [`RawError::NoInterface`], [`RawError::NotEthernet`].
    pub fn open(interface: &str, ether_type: u16) -> Result<EtherSocket, RawError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Without a protocol the socket receives nothing until it is bound, so no foreign frame is queued.
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
            .map_err(RawError::io("read a hardware address"))?
            .ok_or_else(|| RawError::NotEthernet { interface: interface.to_owned() })?;
        Ok(EtherSocket { fd, interface: interface.to_owned(), ether_type, address: HardwareAddress(address) })
    }

    /// Returns the interface's hardware address.
    pub fn address(&self) -> HardwareAddress {
        self.address
    }

    /// Returns the current MTU of the interface in bytes: the largest payload after an Ethernet header.
    ///
    /// # Errors
    /// [`RawError::Io`], for example if the interface was removed.
    pub fn mtu(&self) -> Result<usize, RawError> {
        sys::interface_mtu(self.fd.as_fd(), &self.interface).map_err(RawError::io("read an interface's MTU"))
    }

    /// Requests a receive buffer of `bytes` in the kernel's accounting, about twice the size of the frames.
    ///
    /// # Errors
    /// [`RawError::Io`] if the kernel grants nothing. It grants less than requested without an error.
    pub fn reserve(&self, bytes: usize) -> Result<(), RawError> {
        let wanted = bytes.min(RECEIVE_BYTES_MAX) / 2;
        // The first option exceeds the system's limit and needs CAP_NET_ADMIN.
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&self.fd, wanted)
            .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&self.fd, wanted))
            .map_err(|errno| RawError::io("reserve a receive buffer")(errno.into()))
    }

    /// Receives frames without blocking and replaces the contents of the batch.
    ///
    /// # Cost
    /// One system call.
    ///
    /// # Errors
    /// [`RawError::Io`] if the socket is broken. An interface that is down is no error: nothing arrives.
    pub fn receive(&self, frames: &mut Frames) -> Result<FrameArrivals, RawError> {
        let mut received = [ReceivedDatagram::default(); BATCH_PACKETS_MAX];
        for _ in 0..ERRORS_PER_CALL_MAX {
            let (arena, slot_bytes) = frames.slots();
            match sys::receive(self.fd.as_fd(), arena, 0, slot_bytes, &mut received, BATCH_PACKETS_MAX) {
                Ok(count) => {
                    let taken =
                        received.iter().take(count).filter(|one| frames.note(one, self.address)).count();
                    let is_drained = count < BATCH_PACKETS_MAX;
                    return Ok(FrameArrivals { frames: taken, discarded: count - taken, is_drained });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(RawError::io("receive frames")(error)),
            }
        }
        Ok(FrameArrivals { frames: 0, discarded: 0, is_drained: true })
    }

    /// Takes the pending error of the socket, for example after the interface went down. Until it is taken, a
    /// poll of the socket returns at once. For users of a [`Ring`](ring::Ring), which reports no errors.
    pub fn take_error(&self) -> Option<io::Error> {
        rustix::net::sockopt::socket_error(&self.fd).ok()?.err().map(io::Error::from)
    }

    /// Sends the frames of the batch that the kernel takes without blocking.
    ///
    /// # Cost
    /// One system call if the kernel takes all frames.
    pub fn send(&self, frames: &mut Frames) -> Departures {
        frames.write_headers(self.address, self.ether_type);
        let mut departures = Departures { packets: 0, too_large: 0, blocked: None };
        if let Some(frame) = frames.only()
            && rustix::net::send(&self.fd, frame, SendFlags::DONTWAIT).is_ok()
        {
            // A fast path for a single frame.
            frames.mark_sent(1);
            departures.packets = 1;
            return departures;
        }
        let mut ranges: [Range<usize>; BATCH_PACKETS_MAX] = std::array::from_fn(|_| 0..0);
        loop {
            let count = frames.queued(&mut ranges);
            if count == 0 {
                return departures;
            }
            match sys::send(self.fd.as_fd(), frames.arena(), ranges.get(..count).unwrap_or_default()) {
                Ok(sent) => {
                    frames.mark_sent(sent);
                    departures.packets += sent;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                    frames.mark_sent(1);
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

/// Returns whether an error is transient, such as an interface that is down.
fn is_passing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted || error.raw_os_error() == Some(libc::ENETDOWN)
}

impl AsFd for EtherSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
