//! System calls without a safe wrapper.
#![expect(unsafe_code, reason = "socket options that rustix does not name, and signals at a parent's end")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::gauge::SendTimes;

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

/// Offsets in the kernel's `struct tcp_info` (linux/tcp.h), in bytes. The struct only grows at its end; Linux 4.10 has
/// all of these.
const MIN_RTT_AT: usize = 148;
const BUSY_AT: usize = 168;
const RWND_LIMITED_AT: usize = 176;
const SNDBUF_LIMITED_AT: usize = 184;
const TCP_INFO_BYTES: usize = 192;

/// Reads `TCP_INFO`; `None` if the socket is not TCP, or an older kernel returns less.
pub(crate) fn tcp_send_times(fd: impl AsFd) -> io::Result<Option<SendTimes>> {
    let mut info = [0_u8; TCP_INFO_BYTES];
    let mut length = TCP_INFO_BYTES as libc::socklen_t;
    // SAFETY: the value points to `length` live bytes that only this function uses, and the kernel writes at most so
    // many.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if (length as usize) < TCP_INFO_BYTES {
        return Ok(None);
    }
    let micros = |at: usize| {
        let bytes = info.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        Duration::from_micros(bytes.map_or(0, u64::from_ne_bytes))
    };
    let rtt = info.get(MIN_RTT_AT..MIN_RTT_AT + 4).and_then(|bytes| bytes.try_into().ok());
    Ok(Some(SendTimes {
        busy: micros(BUSY_AT),
        limited: micros(RWND_LIMITED_AT) + micros(SNDBUF_LIMITED_AT),
        rtt_min: Duration::from_micros(rtt.map_or(0, u32::from_ne_bytes).into()),
    }))
}

/// Has the child get SIGTERM when this process ends, for instance because it is killed. The kernel watches the calling
/// thread (prctl(2), `PR_SET_PDEATHSIG`), so only the main thread asks for this; a child of another thread ends when its
/// standard input does. The child blocks no signals, whichever this process blocks.
pub(crate) fn end_with_process(command: &mut Command) {
    let is_main_thread = rustix::thread::gettid() == rustix::process::getpid();
    // SAFETY: between fork and exec only system calls are made that change attributes of the child, with a signal set
    // that sigemptyset initializes.
    unsafe {
        command.pre_exec(move || {
            let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            let failed = libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) != 0
                || is_main_thread && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0;
            if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
        });
    }
}
