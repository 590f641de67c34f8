//! Kernel filters of an echo socket: only echo replies with its identifier pass.
//!
//! There are two filters. The filter on types runs before the kernel clones the packet for the socket, which
//! on loopback saves a clone of each request. The filter on identifiers runs later, but before the packet is
//! charged to the receive buffer. So foreign pings and error messages use no room in the buffer.

use std::io;
use std::os::fd::BorrowedFd;

use crate::icmp::Family;
use crate::icmp::header::{EchoIdent, reply_kind};
use crate::sys::{self, FilterStep};

/// The option of raw IPv4 sockets that blocks ICMP types below 32 (`ICMP_FILTER` of `linux/icmp.h`).
const ICMP_FILTER: libc::c_int = 1;
/// The option of raw ICMPv6 sockets that blocks types (`ICMPV6_FILTER` of `linux/icmpv6.h`; RFC 3542, section 3.2).
const ICMPV6_FILTER: libc::c_int = 1;

/// Loads the length of the IPv4 header into X.
const LOAD_HEADER_LENGTH: FilterStep = (0xb1, 0, 0, 0);
/// Loads the two bytes at X + 4.
const LOAD_IDENT_BEHIND_HEADER: FilterStep = (0x48, 0, 0, 4);
/// Loads the two bytes at 4.
const LOAD_IDENT: FilterStep = (0x28, 0, 0, 4);
const ACCEPT: FilterStep = (0x06, 0, 0, u32::MAX);
const REFUSE: FilterStep = (0x06, 0, 0, 0);

/// Continues if the loaded value is equal, else skips one step.
const fn unless_equal_skip(value: u32) -> FilterStep {
    (0x15, 0, 1, value)
}

/// Installs both filters.
///
/// # Errors
/// The system's error.
pub(super) fn install(fd: BorrowedFd<'_>, family: Family, ident: EchoIdent) -> io::Result<()> {
    let is_ours = unless_equal_skip(u32::from(ident.0));
    let kind = u32::from(reply_kind(family));
    match family {
        Family::V4 => {
            let steps = [LOAD_HEADER_LENGTH, LOAD_IDENT_BEHIND_HEADER, is_ours, ACCEPT, REFUSE];
            sys::attach_filter(fd, &steps)?;
            // A set bit blocks the type.
            sys::set_option(fd, libc::SOL_RAW, ICMP_FILTER, &!(1u32 << kind))
        }
        Family::V6 => {
            // A raw IPv6 socket gets packets without the IPv6 headers.
            sys::attach_filter(fd, &[LOAD_IDENT, is_ours, ACCEPT, REFUSE])?;
            let blocked: [u32; 8] =
                std::array::from_fn(
                    |word| {
                        if word as u32 == kind / 32 { !(1 << (kind % 32)) } else { u32::MAX }
                    },
                );
            sys::set_option(fd, libc::IPPROTO_ICMPV6, ICMPV6_FILTER, &blocked)
        }
    }
}
