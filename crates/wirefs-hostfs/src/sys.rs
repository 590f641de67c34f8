//! The system calls that no library wraps safely.
#![expect(unsafe_code, reason = "raw system calls; each block says why it is sound")]

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::ffi::CStr;
use std::ptr;

type Outcome<T> = Result<T, Errno>;

/// Not yet in the libc crate; one number on all architectures that Rust's Linux targets cover, as for all calls since 5.1.
const SYS_LISTXATTRAT: libc::c_long = 465;

/// The last error of this thread's system calls.
fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn outcome(code: libc::c_long) -> Outcome<usize> {
    usize::try_from(code).map_err(|_| last_error())
}

/// The size of the list of extended attributes' names of `name` in `dir`, of the link itself when it is one; of `dir`
/// itself when `name` is empty. Linux 6.13 and newer, else `NOSYS`.
pub(crate) fn listxattrat_size(dir: BorrowedFd<'_>, name: &CStr) -> Outcome<usize> {
    let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;
    // SAFETY: `name` is a terminated string that outlives the call; a null list of size 0 only asks for the size.
    let code = unsafe {
        libc::syscall(SYS_LISTXATTRAT, dir.as_raw_fd(), name.as_ptr(), flags, ptr::null_mut::<u8>(), 0_usize)
    };
    outcome(code)
}

/// Changes the permission bits of what `fd` stands for, also when that was opened with `O_PATH`. Linux 6.6 and newer,
/// else `NOSYS`.
pub(crate) fn chmod_path_fd(fd: BorrowedFd<'_>, mode: u32) -> Outcome<()> {
    // SAFETY: the empty name is a terminated static string; nothing else is a pointer.
    let code = unsafe {
        libc::syscall(libc::SYS_fchmodat2, fd.as_raw_fd(), c"".as_ptr(), mode, libc::AT_EMPTY_PATH)
    };
    outcome(code).map(drop)
}

/// Sets the calling thread's user id for file access; returns the previous one. The kernel reports no failure, only no change.
pub(crate) fn set_fsuid(uid: u32) -> u32 {
    // SAFETY: no pointers; the raw call changes the calling thread alone.
    unsafe { libc::syscall(libc::SYS_setfsuid, uid) as u32 }
}

/// Sets the calling thread's group id for file access; returns the previous one.
pub(crate) fn set_fsgid(gid: u32) -> u32 {
    // SAFETY: as for `set_fsuid`.
    unsafe { libc::syscall(libc::SYS_setfsgid, gid) as u32 }
}

/// Gives the calling thread a umask (and working directory) of its own.
pub(crate) fn unshare_umask() -> Outcome<()> {
    // SAFETY: only the umask, root and working directory become the thread's own; descriptors stay shared.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }
}

/// A byte-range lock as the kernel takes and reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flock {
    /// `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
    pub(crate) kind: libc::c_int,
    /// First byte.
    pub(crate) start: i64,
    /// Number of bytes; 0 is to the end.
    pub(crate) length: i64,
    /// The holder in reports; -1 for an open file description.
    pub(crate) pid: i32,
}

fn ofd_lock(fd: BorrowedFd<'_>, command: libc::c_int, lock: Flock) -> Outcome<Flock> {
    let mut raw = libc::flock {
        l_type: lock.kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: lock.start,
        l_len: lock.length,
        l_pid: 0,
    };
    // SAFETY: the command takes a pointer to one `flock`, which lives on this stack frame.
    let code = unsafe { libc::fcntl(fd.as_raw_fd(), command, ptr::from_mut(&mut raw)) };
    outcome(code.into())?;
    Ok(Flock { kind: raw.l_type.into(), start: raw.l_start, length: raw.l_len, pid: raw.l_pid })
}

/// Takes or releases a range for the open file description behind `fd`, without waiting.
pub(crate) fn set_ofd_lock(fd: BorrowedFd<'_>, lock: Flock) -> Outcome<()> {
    ofd_lock(fd, libc::F_OFD_SETLK, lock).map(drop)
}

/// Tells which lock would stand in the way of `lock`; its kind is `F_UNLCK` when none would.
pub(crate) fn test_ofd_lock(fd: BorrowedFd<'_>, lock: Flock) -> Outcome<Flock> {
    ofd_lock(fd, libc::F_OFD_GETLK, lock)
}
