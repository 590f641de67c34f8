//! A socket for echo messages with one host.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use crate::batch::{Batch, IPV4_AT, MESSAGE_AT};
use crate::error::RawError;
use crate::icmp::header::Ident;
use crate::limits::{BATCH_PACKETS_MAX, ERRORS_PER_CALL_MAX};
use crate::sys::{self, Received};

pub mod courier;
mod filter;
pub mod header;
pub mod memory;
mod options;
mod path;

/// Which Internet protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4, ICMP (RFC 792).
    V4,
    /// IPv6, ICMPv6 (RFC 4443).
    V6,
}

/// A raw socket that exchanges echo messages with one host: it receives that host's replies which carry its ident, and
/// nothing else; what it sends is never cut into fragments, here or on the way.
#[derive(Debug)]
pub struct EchoSocket {
    fd: OwnedFd,
    host: IpAddr,
    family: Family,
    ident: Ident,
}

/// What one receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// Echo replies in the batch.
    pub replies: usize,
    /// Packets that were no whole echo reply of ours, or too large for the batch; they are gone.
    pub others: usize,
    /// Whether the socket is empty now.
    pub is_drained: bool,
}

/// What one send achieved.
#[derive(Debug)]
pub struct Departures {
    /// Packets that the kernel took.
    pub packets: usize,
    /// Packets that are larger than the way to the host; they are given up.
    pub too_large: usize,
    /// Why the rest of the batch waits; none when nothing does.
    pub blocked: Option<Blocked>,
}

/// Why packets cannot be sent now. They stay in the batch; sending it again later is safe.
#[derive(Debug)]
pub enum Blocked {
    /// The device's queue or the socket's own is full: again when the socket is writable, or after a moment.
    Full,
    /// The system refuses, as when a link is down or a firewall forbids it: again after a while.
    Refused(io::Error),
}

impl EchoSocket {
    /// Opens a socket for this host. The port of `host` means nothing; its scope says through which device a link-local
    /// IPv6 address is reached.
    ///
    /// # Errors
    /// [`RawError::NotPermitted`] without CAP_NET_RAW, [`RawError::NoFamily`], [`RawError::Unreachable`] without a route.
    pub fn open(host: SocketAddr, ident: Ident) -> Result<EchoSocket, RawError> {
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
        // First of all, so that nothing that is not ours is ever queued.
        filter::install(fd.as_fd(), family, ident).map_err(RawError::io("set the filter of a raw socket"))?;
        options::set(fd.as_fd(), family)?;
        rustix::net::connect(&fd, &host)
            .map_err(|errno| RawError::Unreachable { host: host.ip(), source: errno.into() })?;
        Ok(EchoSocket { fd, host: host.ip(), family, ident })
    }

    /// The host that answers.
    pub fn host(&self) -> IpAddr {
        self.host
    }

    /// Which Internet protocol is spoken with it.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Notes from now on when each packet comes, so that [`Batch::exchange`] knows how long it waited here.
    ///
    /// # Errors
    /// [`RawError::Io`].
    pub fn note_arrivals(&self) -> Result<(), RawError> {
        options::note_arrivals(self.fd.as_fd())
    }

    /// Receives up to `most` packets without waiting, replacing what was in the batch.
    ///
    /// # Cost
    /// One system call; two when it finds the socket empty behind fewer than `most`.
    ///
    /// # Errors
    /// [`RawError::Io`]. ICMP errors that others reported meanwhile are taken off the socket and are none: a packet that
    /// does not come back tells as much, and cannot be forged by anybody who knows only addresses.
    pub fn receive(&self, batch: &mut Batch, most: usize) -> Result<Arrivals, RawError> {
        let most = most.min(BATCH_PACKETS_MAX);
        let at = match self.family {
            Family::V4 => IPV4_AT,
            Family::V6 => MESSAGE_AT,
        };
        let mut received = [Received::default(); BATCH_PACKETS_MAX];
        let count = self.receive_slots(batch, &mut received, at, most)?;
        let now = received.first().and_then(|first| first.arrived).map(|_| sys::wall_clock());
        let mut replies = 0;
        for (index, one) in received.iter().take(count).enumerate() {
            let message = (!one.is_cut).then(|| self.message(batch, index, at, one.bytes)).flatten();
            let waited = now.zip(one.arrived).map_or(Duration::ZERO, |(now, then)| now.saturating_sub(then));
            replies += usize::from(message.is_some());
            batch.note(message, waited);
        }
        Ok(Arrivals { replies, others: count - replies, is_drained: count < most })
    }

    fn receive_slots(
        &self,
        batch: &mut Batch,
        received: &mut [Received; BATCH_PACKETS_MAX],
        at: usize,
        most: usize,
    ) -> Result<usize, RawError> {
        let (arena, slot_bytes) = batch.slots();
        if most == 0 {
            return Ok(0);
        }
        for _ in 0..ERRORS_PER_CALL_MAX {
            match sys::receive(self.fd.as_fd(), arena, at, slot_bytes, received, most) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.forget_errors()?,
            }
        }
        Ok(0)
    }

    /// Finds the echo message in what was received: where in the slot it begins, and its bytes.
    fn message(&self, batch: &Batch, index: usize, at: usize, bytes: usize) -> Option<(usize, usize)> {
        let datagram = batch.received(index, at, bytes);
        let header_bytes = match self.family {
            Family::V4 => usize::from(datagram.first()? & 0x0f) * 4,
            Family::V6 => 0,
        };
        let message = datagram.get(header_bytes..)?;
        header::is_reply(message, self.family, self.ident).then_some((at + header_bytes, message.len()))
    }

    /// Sends what the batch has to be sent, as far as the kernel takes it without waiting.
    ///
    /// # Cost
    /// One system call while the kernel takes everything; one pass over each IPv4 message for its checksum.
    ///
    /// # Errors
    /// [`RawError::Io`] when the socket itself is broken.
    pub fn send(&self, batch: &mut Batch) -> Result<Departures, RawError> {
        batch.write_headers(|message, sequence| {
            header::write_request(message, self.family, self.ident, sequence);
        });
        let mut departures = Departures { packets: 0, too_large: 0, blocked: None };
        let mut errors = 0;
        let mut ranges: [Range<usize>; BATCH_PACKETS_MAX] = std::array::from_fn(|_| 0..0);
        loop {
            let count = batch.leaving(&mut ranges);
            if count == 0 {
                return Ok(departures);
            }
            match sys::send(self.fd.as_fd(), batch.arena(), ranges.get(..count).unwrap_or_default()) {
                Ok(sent) => {
                    batch.take_off(sent);
                    departures.packets += sent;
                    errors = 0;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) => {
                    departures.blocked = Some(Blocked::Full);
                    return Ok(departures);
                }
                // It may be what another reported before, and then the next try goes through.
                Err(_) if errors < ERRORS_PER_CALL_MAX && self.forget_errors().is_ok() && errors == 0 => {
                    errors += 1
                }
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                    batch.take_off(1);
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

    /// Empties the queue of ICMP errors, which would take room from packets.
    fn forget_errors(&self) -> Result<(), RawError> {
        for _ in 0..ERRORS_PER_CALL_MAX {
            if !sys::take_queued_error(self.fd.as_fd()).map_err(RawError::io("read a socket's errors"))? {
                break;
            }
        }
        Ok(())
    }

    /// The largest IP packet that the system believes to pass unfragmented to the host, in bytes: that of the device,
    /// or less where a router said so.
    ///
    /// # Errors
    /// [`RawError::Io`].
    pub fn route_mtu(&self) -> Result<usize, RawError> {
        let mtu = match self.family {
            Family::V4 => sockopt::ip_mtu(&self.fd),
            Family::V6 => sockopt::ipv6_mtu(&self.fd),
        };
        Ok(mtu.map_err(|errno| RawError::io("ask for the path's MTU")(errno.into()))? as usize)
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
