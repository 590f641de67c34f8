//! The one system call that no safe wrapper offers.
#![expect(unsafe_code, reason = "a socket option that rustix does not name")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets `TCP_NOTSENT_LOWAT`: the socket counts as not writable while more than `bytes` are queued unsent.
pub(crate) fn set_notsent_lowat(fd: impl AsFd, bytes: u32) -> io::Result<()> {
    let value: libc::c_uint = bytes;
    // SAFETY: the option value points to a live c_uint and its length is given as such; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            (&raw const value).cast(),
            size_of::<libc::c_uint>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
