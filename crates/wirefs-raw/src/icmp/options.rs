//! How an echo socket is set up.

use std::os::fd::BorrowedFd;

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

use crate::error::RawError;
use crate::icmp::Family;
use crate::sys;

/// Sets what every echo socket needs.
///
/// - *Don't fragment*, and the size that a router reported is not believed when sending (`PMTUDISC_PROBE`): whoever
///   forges such a report could stop blocks from being sent. What is too large is noticed because it does not come back.
/// - *Errors are reported* (`RECVERR`): without it a raw socket drops a packet in silence when the device's queue is
///   full, and calls it sent.
///
/// # Errors
/// [`RawError::Io`].
pub(super) fn set(fd: BorrowedFd<'_>, family: Family) -> Result<(), RawError> {
    let on: libc::c_int = 1;
    let no_fragments = "forbid fragments on a raw socket";
    let errors = "have errors of a raw socket reported";
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

/// Has the kernel note when packets come, on the wall clock.
///
/// # Errors
/// [`RawError::Io`].
pub(super) fn note_arrivals(fd: BorrowedFd<'_>) -> Result<(), RawError> {
    let on: libc::c_int = 1;
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
        .map_err(RawError::io("have arrivals noted on a raw socket"))
}
