//! Socket options of an echo socket.

use std::os::fd::BorrowedFd;

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

use crate::error::RawError;
use crate::icmp::Family;
use crate::sys;

/// Sets the options of every echo socket.
///
/// - *Don't fragment*, and reported path MTUs are ignored when sending (`PMTUDISC_PROBE`): a forged report
///   could stop the transmission of blocks. A packet that is too large is detected by its missing reply.
/// - *Errors are reported* (`RECVERR`): without it a raw socket silently drops a packet when the device's
///   queue is full, and reports it as sent.
///
/// # Errors
/// [`RawError::Io`].
pub(super) fn set(fd: BorrowedFd<'_>, family: Family) -> Result<(), RawError> {
    let on: libc::c_int = 1;
    let no_fragments = "disable fragmentation on a raw socket";
    let errors = "enable error reports of a raw socket";
    match family {
        Family::V4 => {
            sockopt::set_ip_mtu_discover(fd, Ipv4PathMtuDiscovery::PROBE)
                .map_err(|errno| RawError::io(no_fragments)(errno.into()))?;
            sys::set_option(fd, libc::IPPROTO_IP, libc::IP_RECVERR, &on).map_err(RawError::io(errors))
        }
        Family::V6 => {
            sockopt::set_ipv6_mtu_discover(fd, Ipv6PathMtuDiscovery::PROBE)
                .map_err(|errno| RawError::io(no_fragments)(errno.into()))?;
            sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, &on)
                .map_err(RawError::io(no_fragments))?;
            sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, &on).map_err(RawError::io(errors))
        }
    }
}

/// Enables receive timestamps on the wall clock.
///
/// # Errors
/// [`RawError::Io`].
pub(super) fn enable_timestamps(fd: BorrowedFd<'_>) -> Result<(), RawError> {
    let on: libc::c_int = 1;
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
        .map_err(RawError::io("enable timestamps on a raw socket"))
}
