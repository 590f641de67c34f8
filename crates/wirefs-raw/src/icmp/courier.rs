//! Echo requests whose answer goes to another one: packets from here to a host, and from it to whoever is named as their source.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrV4, SocketFlags, SocketType, ipproto, sockopt,
};

use crate::error::RawError;
use crate::icmp::header::{Ident, Sequence, is_reply, write_request};
use crate::icmp::{Family, filter, is_full, options};
use crate::limits::{ECHO_HEADER_BYTES, IPV4_HEADER_BYTES, MESSAGE_BYTES_MAX};

/// How many routers a packet passes at most (RFC 1700 recommends it).
const HOPS_MAX: u8 = 64;
/// The flag that forbids fragments, in the upper byte of its field.
const NO_FRAGMENTS: u8 = 0x40;

/// Sends echo requests with any source, and receives the replies that carry its ident, whichever host they come from. IPv4 only.
#[derive(Debug)]
pub struct Courier {
    sender: OwnedFd,
    receiver: OwnedFd,
    ident: Ident,
}

impl Courier {
    /// Opens both sockets, with a receive buffer of so many bytes, as far as the system allows.
    ///
    /// # Errors
    /// [`RawError::NotPermitted`] without CAP_NET_RAW; [`RawError::Io`].
    pub fn open(ident: Ident, buffer_bytes: usize) -> Result<Courier, RawError> {
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
        Ok(Courier { sender, receiver, ident })
    }

    /// Pings `host` with this payload in the name of `source`, which gets the reply. False: the system has no room now, or no way
    /// leads there, or the packet is too large for it.
    ///
    /// # Cost
    /// One system call, one copy, one pass for the checksum.
    ///
    /// # Errors
    /// [`RawError::Io`] when the socket itself is broken.
    pub fn send(&self, source: Ipv4Addr, host: Ipv4Addr, payload: &[u8]) -> Result<bool, RawError> {
        let bytes = IPV4_HEADER_BYTES + ECHO_HEADER_BYTES + payload.len();
        let Ok(length) = u16::try_from(bytes) else { return Ok(false) };
        let mut packet = Vec::with_capacity(bytes);
        packet.extend_from_slice(&ipv4_header(length, source, host));
        packet.extend_from_slice(&[0; ECHO_HEADER_BYTES]);
        packet.extend_from_slice(payload);
        if let Some(message) = packet.get_mut(IPV4_HEADER_BYTES..) {
            write_request(message, Family::V4, self.ident, Sequence(0));
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

    /// Takes the payload of the next reply, if one is there, into `room`, which holds the packet as it came.
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
                // What others reported; the next call goes through.
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

impl AsFd for Courier {
    /// The socket that receives.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

/// The header of a packet of so many bytes; the kernel fills in its checksum and number.
fn ipv4_header(bytes: u16, source: Ipv4Addr, to: Ipv4Addr) -> [u8; IPV4_HEADER_BYTES] {
    let [high, low] = bytes.to_be_bytes();
    let ([s1, s2, s3, s4], [t1, t2, t3, t4]) = (source.octets(), to.octets());
    let protocol = libc::IPPROTO_ICMP as u8;
    [0x45, 0, high, low, 0, 0, NO_FRAGMENTS, 0, HOPS_MAX, protocol, 0, 0, s1, s2, s3, s4, t1, t2, t3, t4]
}
