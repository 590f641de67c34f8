//! Echo requests with another node's source address: the host's reply goes to that node. The host thereby
//! relays the payload.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrV4, SocketFlags, SocketType, ipproto, sockopt,
};

use crate::error::RawError;
use crate::icmp::header::{EchoIdent, EchoSequence, is_reply, write_request};
use crate::icmp::{Family, filter, is_full, options};
use crate::limits::{ECHO_HEADER_BYTES, IPV4_HEADER_BYTES, MESSAGE_BYTES_MAX};

/// The default time to live (RFC 1700).
const HOPS_MAX: u8 = 64;
/// The don't-fragment flag in the upper byte of its field.
const NO_FRAGMENTS: u8 = 0x40;

/// Sends echo requests with any source address, and receives replies with its identifier from any host. IPv4
/// only.
#[derive(Debug)]
pub struct EchoRelay {
    sender: OwnedFd,
    receiver: OwnedFd,
    ident: EchoIdent,
}

impl EchoRelay {
    /// Opens both sockets, with a receive buffer of `buffer_bytes` as far as the system allows.
    ///
    /// # Errors
    /// [`RawError::NotPermitted`] without CAP_NET_RAW; [`RawError::Io`].
    pub fn open(ident: EchoIdent, buffer_bytes: usize) -> Result<EchoRelay, RawError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let open = |protocol| {
            rustix::net::socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(protocol)).map_err(
                |errno| match errno {
                    rustix::io::Errno::PERM | rustix::io::Errno::ACCESS => RawError::NotPermitted,
                    other => RawError::io("open a raw ICMP socket")(other.into()),
                },
            )
        };
        let (sender, receiver) = (open(ipproto::RAW)?, open(ipproto::ICMP)?);
        filter::install(receiver.as_fd(), Family::V4, ident)
            .map_err(RawError::io("set the filter of a raw socket"))?;
        options::set(receiver.as_fd(), Family::V4)?;
        if sockopt::set_socket_recv_buffer_size_force(&receiver, buffer_bytes).is_err() {
            sockopt::set_socket_recv_buffer_size(&receiver, buffer_bytes)
                .map_err(|errno| RawError::io("size the buffer of a raw socket")(errno.into()))?;
        }
        Ok(EchoRelay { sender, receiver, ident })
    }

    /// Pings `host` with this payload and the source address `source`, which gets the reply. Returns `false`
    /// if a queue is full, no route exists, or the packet is too large.
    ///
    /// # Cost
    /// One system call, one copy, one pass for the checksum.
    ///
    /// # Errors
    /// [`RawError::Io`] if the socket is broken.
    pub fn send(&self, source: Ipv4Addr, host: Ipv4Addr, payload: &[u8]) -> Result<bool, RawError> {
        let bytes = IPV4_HEADER_BYTES + ECHO_HEADER_BYTES + payload.len();
        let Ok(length) = u16::try_from(bytes) else { return Ok(false) };
        let mut packet = Vec::with_capacity(bytes);
        packet.extend_from_slice(&ipv4_header(length, source, host));
        packet.extend_from_slice(&[0; ECHO_HEADER_BYTES]);
        packet.extend_from_slice(payload);
        if let Some(message) = packet.get_mut(IPV4_HEADER_BYTES..) {
            write_request(message, Family::V4, self.ident, EchoSequence(0));
        }
        let to = SocketAddrV4::new(host, 0);
        match rustix::net::sendto(&self.sender, &packet, SendFlags::empty(), &to) {
            Ok(_) => Ok(true),
            Err(errno) => match io::Error::from(errno) {
                error if is_full(&error) => Ok(false),
                error if error.raw_os_error() == Some(libc::EBADF) => {
                    Err(RawError::io("send on a raw socket")(error))
                }
                _ => Ok(false),
            },
        }
    }

    /// Receives the payload of the next reply into `room`, without blocking. Returns `None` if none waits.
    ///
    /// # Errors
    /// [`RawError::Io`].
    pub fn receive<'room>(&self, room: &'room mut Vec<u8>) -> Result<Option<&'room mut [u8]>, RawError> {
        room.resize(IPV4_HEADER_BYTES + MESSAGE_BYTES_MAX, 0);
        let count = loop {
            match rustix::net::recv(&self.receiver, &mut room[..], RecvFlags::empty()) {
                Ok((count, _)) => break count,
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                // A reported ICMP error; the next call succeeds.
                Err(rustix::io::Errno::BADF) => {
                    return Err(RawError::io("receive on a raw socket")(rustix::io::Errno::BADF.into()));
                }
                Err(_) => return Ok(None),
            }
        };
        let header_bytes = room.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
        let message = room.get_mut(header_bytes..count).unwrap_or_default();
        let payload =
            if is_reply(message, Family::V4, self.ident) { ECHO_HEADER_BYTES } else { message.len() };
        Ok(message.get_mut(payload..))
    }
}

impl AsFd for EchoRelay {
    /// Returns the receiving socket.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

/// Returns the header of a packet of `bytes` bytes. The kernel fills in its checksum and identification.
fn ipv4_header(bytes: u16, source: Ipv4Addr, to: Ipv4Addr) -> [u8; IPV4_HEADER_BYTES] {
    let [high, low] = bytes.to_be_bytes();
    let ([s1, s2, s3, s4], [t1, t2, t3, t4]) = (source.octets(), to.octets());
    let protocol = libc::IPPROTO_ICMP as u8;
    [0x45, 0, high, low, 0, 0, NO_FRAGMENTS, 0, HOPS_MAX, protocol, 0, 0, s1, s2, s3, s4, t1, t2, t3, t4]
}
