//! The system calls that report the network card on which a datagram arrived.

#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper in rustix; each block states why it is sound"
)]

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Room for one control message with an `in_pktinfo`, in 8-byte words so that it is aligned: the header takes 2 at
/// most.
const CONTROL_WORDS: usize = 4;
const _: () = assert!(
    CONTROL_WORDS * 8 >= size_of::<libc::cmsghdr>() + size_of::<libc::in_pktinfo>() + 4,
    "a control message fits, rounded up"
);

/// The arrival of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The sender address, unverified.
    pub(crate) from: SocketAddr,
    /// The card's index.
    pub(crate) card: u32,
    /// The destination address.
    pub(crate) to: Ipv4Addr,
}

/// Lets an IPv4 socket report the card of each datagram.
///
/// # Errors
/// Those of `setsockopt(2)`.
pub(crate) fn report_cards(socket: &UdpSocket) -> io::Result<()> {
    let is_on: libc::c_int = 1;
    // SAFETY: the value is an integer that lives through the call, its true length is given, and the kernel reads only.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_PKTINFO,
            (&raw const is_on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives a datagram from a socket after [`report_cards`]. Returns its size in the buffer and its arrival; `None` if
/// the kernel does not report it.
///
/// # Errors
/// Those of `recvmsg(2)`, including a timeout.
pub(crate) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, Option<Arrival>)> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut slice = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: both are integers and pointers, of which all may be zero.
    let (mut name, mut header): (libc::sockaddr_in, libc::msghdr) =
        unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
    header.msg_name = (&raw mut name).cast();
    header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_iov = &raw mut slice;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header and all it points to live through the call, each with its true length; no pointer is kept.
    let result = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let bytes = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled in the header; `control`, to which it points, is aligned and alive.
    let first = unsafe { libc::CMSG_FIRSTHDR(&raw const header).as_ref() };
    let is_it = |found: &&libc::cmsghdr| {
        (found.cmsg_level, found.cmsg_type) == (libc::IPPROTO_IP, libc::IP_PKTINFO)
            && libc::c_int::from(name.sin_family) == libc::AF_INET
    };
    let arrival = first.filter(is_it).map(|found| {
        // SAFETY: a message of this type is followed by an `in_pktinfo`, for which `control` has room.
        let info: libc::in_pktinfo =
            unsafe { libc::CMSG_DATA(found).cast::<libc::in_pktinfo>().read_unaligned() };
        let address = |raw: libc::in_addr| Ipv4Addr::from(u32::from_be(raw.s_addr));
        Arrival {
            from: SocketAddr::from((address(name.sin_addr), u16::from_be(name.sin_port))),
            card: u32::try_from(info.ipi_ifindex).unwrap_or(0),
            to: address(info.ipi_addr),
        }
    });
    Ok((bytes, arrival))
}
