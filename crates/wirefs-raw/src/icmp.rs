//! A socket for echo messages with one host.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use crate::batch::{IPV4_AT, MESSAGE_AT, PacketBatch};
use crate::error::RawError;
use crate::icmp::header::EchoIdent;
use crate::limits::{BATCH_PACKETS_MAX, ERRORS_PER_CALL_MAX};
use crate::sys::{self, ReceivedDatagram};

mod filter;
pub mod header;
pub mod memory;
mod options;
mod path;
pub mod relay;

/// The Internet protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4, ICMP (RFC 792).
    V4,
    /// IPv6, ICMPv6 (RFC 4443).
    V6,
}

/// A raw socket that exchanges echo messages with one host. It receives only that host's replies with its
/// identifier. Its packets are never fragmented.
#[derive(Debug)]
pub struct EchoSocket {
    fd: OwnedFd,
    host: IpAddr,
    family: Family,
    ident: EchoIdent,
}

/// The result of a receive call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// Echo replies in the batch.
    pub replies: usize,
    /// Discarded packets: no complete echo reply with this identifier, or too large for the batch.
    pub discarded: usize,
    /// Whether the socket is now empty.
    pub is_drained: bool,
}

/// The result of a send call.
#[derive(Debug)]
pub struct Departures {
    /// Packets that the kernel took.
    pub packets: usize,
    /// Discarded packets, larger than the path MTU.
    pub too_large: usize,
    /// The reason why the rest of the batch waits; `None` if nothing waits.
    pub blocked: Option<Blocked>,
}

/// The reason why packets cannot be sent now. They stay in the batch and can be sent later.
#[derive(Debug)]
pub enum Blocked {
    /// The device's queue or the socket's is full. Retry when the socket is writable, or after a moment.
    Full,
    /// The system refuses, for example because a link is down or a firewall forbids it. Retry after a while.
    Refused(io::Error),
}

impl EchoSocket {
    /// Opens a socket for this host. The port of `host` is ignored; its scope selects the device of a
    /// link-local IPv6 address.
    ///
    /// # Errors
    /// [`RawError::NotPermitted`] without CAP_NET_RAW, [`RawError::NoFamily`], [`RawError::Unreachable`]
    /// without a route.
    pub fn open(host: SocketAddr, ident: EchoIdent) -> Result<EchoSocket, RawError> {
        let (domain, protocol, family, family_name) = match host {
            SocketAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP, Family::V4, "IPv4"),
            SocketAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6, Family::V6, "IPv6"),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd =
            rustix::net::socket_with(domain, SocketType::RAW, flags, Some(protocol)).map_err(|errno| {
                match errno {
                    rustix::io::Errno::PERM | rustix::io::Errno::ACCESS => RawError::NotPermitted,
                    rustix::io::Errno::AFNOSUPPORT | rustix::io::Errno::PROTONOSUPPORT => {
                        RawError::NoFamily { family: family_name, host: host.ip() }
                    }
                    other => RawError::io("open a raw ICMP socket")(other.into()),
                }
            })?;
        // First of all, so that no foreign packet is queued.
        filter::install(fd.as_fd(), family, ident).map_err(RawError::io("set the filter of a raw socket"))?;
        options::set(fd.as_fd(), family)?;
        rustix::net::connect(&fd, &host)
            .map_err(|errno| RawError::Unreachable { host: host.ip(), source: errno.into() })?;
        Ok(EchoSocket { fd, host: host.ip(), family, ident })
    }

    /// Returns the host.
    pub fn host(&self) -> IpAddr {
        self.host
    }

    /// Returns the Internet protocol version.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Enables receive timestamps, so that [`PacketBatch::exchange`] knows how long each packet waited in the
    /// socket.
    ///
    /// # Errors
    /// [`RawError::Io`].
    pub fn enable_timestamps(&self) -> Result<(), RawError> {
        options::enable_timestamps(self.fd.as_fd())
    }

    /// Receives up to `max` packets without blocking and replaces the contents of the batch.
    ///
    /// # Cost
    /// One system call; two if the socket is empty after fewer than `max`.
    ///
    /// # Errors
    /// [`RawError::Io`]. Reported ICMP errors are discarded and no error: a missing reply says as much, and
    /// cannot be forged with the addresses alone.
    pub fn receive(&self, batch: &mut PacketBatch, max: usize) -> Result<Arrivals, RawError> {
        let max = max.min(BATCH_PACKETS_MAX);
        let at = match self.family {
            Family::V4 => IPV4_AT,
            Family::V6 => MESSAGE_AT,
        };
        let mut received = [ReceivedDatagram::default(); BATCH_PACKETS_MAX];
        let count = self.receive_slots(batch, &mut received, at, max)?;
        let now = received.first().and_then(|first| first.arrived).map(|_| sys::wall_clock());
        let mut replies = 0;
        for (index, one) in received.iter().take(count).enumerate() {
            let message = (!one.is_cut).then(|| self.message(batch, index, at, one.bytes)).flatten();
            let waited = now.zip(one.arrived).map_or(Duration::ZERO, |(now, then)| now.saturating_sub(then));
            replies += usize::from(message.is_some());
            batch.note(message, waited);
        }
        Ok(Arrivals { replies, discarded: count - replies, is_drained: count < max })
    }

    fn receive_slots(
        &self,
        batch: &mut PacketBatch,
        received: &mut [ReceivedDatagram; BATCH_PACKETS_MAX],
        at: usize,
        max: usize,
    ) -> Result<usize, RawError> {
        let (arena, slot_bytes) = batch.slots();
        if max == 0 {
            return Ok(0);
        }
        for _ in 0..ERRORS_PER_CALL_MAX {
            match sys::receive(self.fd.as_fd(), arena, at, slot_bytes, received, max) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.clear_errors()?,
            }
        }
        Ok(0)
    }

    /// Returns the offset in the slot and the size of the echo message in a received packet.
    fn message(&self, batch: &PacketBatch, index: usize, at: usize, bytes: usize) -> Option<(usize, usize)> {
        let datagram = batch.received(index, at, bytes);
        let header_bytes = match self.family {
            Family::V4 => usize::from(datagram.first()? & 0x0f) * 4,
            Family::V6 => 0,
        };
        let message = datagram.get(header_bytes..)?;
        header::is_reply(message, self.family, self.ident).then_some((at + header_bytes, message.len()))
    }

    /// Sends the packets of the batch that the kernel takes without blocking.
    ///
    /// # Cost
    /// One system call if the kernel takes all packets; one pass over each IPv4 message for its checksum.
    ///
    /// # Errors
    /// [`RawError::Io`] if the socket is broken.
    pub fn send(&self, batch: &mut PacketBatch) -> Result<Departures, RawError> {
        batch.write_headers(|message, sequence| {
            header::write_request(message, self.family, self.ident, sequence);
        });
        let mut departures = Departures { packets: 0, too_large: 0, blocked: None };
        let mut errors = 0;
        let mut ranges: [Range<usize>; BATCH_PACKETS_MAX] = std::array::from_fn(|_| 0..0);
        loop {
            let count = batch.queued(&mut ranges);
            if count == 0 {
                return Ok(departures);
            }
            match sys::send(self.fd.as_fd(), batch.arena(), ranges.get(..count).unwrap_or_default()) {
                Ok(sent) => {
                    batch.mark_sent(sent);
                    departures.packets += sent;
                    errors = 0;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) => {
                    departures.blocked = Some(Blocked::Full);
                    return Ok(departures);
                }
                // An earlier ICMP error may be reported here, and then the next attempt succeeds.
                Err(_) if errors < ERRORS_PER_CALL_MAX && self.clear_errors().is_ok() && errors == 0 => {
                    errors += 1
                }
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                    batch.mark_sent(1);
                    departures.too_large += 1;
                    errors = 0;
                }
                Err(error) => {
                    departures.blocked = Some(Blocked::Refused(error));
                    return Ok(departures);
                }
            }
        }
    }

    /// Empties the queue of ICMP errors, which uses the receive buffer.
    fn clear_errors(&self) -> Result<(), RawError> {
        for _ in 0..ERRORS_PER_CALL_MAX {
            if !sys::take_queued_error(self.fd.as_fd()).map_err(RawError::io("read a socket's errors"))? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the path MTU in bytes as known to the system: that of the device, or less if a router reported
    /// it.
    ///
    /// # Errors
    /// [`RawError::Io`].
    pub fn route_mtu(&self) -> Result<usize, RawError> {
        let mtu = match self.family {
            Family::V4 => sockopt::ip_mtu(&self.fd),
            Family::V6 => sockopt::ipv6_mtu(&self.fd),
        };
        Ok(mtu.map_err(|errno| RawError::io("read the path MTU")(errno.into()))? as usize)
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
