//! System calls without a safe wrapper in the libraries.
#![expect(unsafe_code, reason = "raw system calls; each block says why it is sound")]

use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use std::ffi::CStr;
use std::ops::Range;
use std::ptr;

type Outcome<T> = Result<T, Errno>;

/// Missing in the libc crate. The number is the same on all architectures, as for all calls since Linux 5.1.
const SYS_LISTXATTRAT: libc::c_long = 465;

/// The error of this thread's last system call.
fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn outcome(code: libc::c_long) -> Outcome<usize> {
    usize::try_from(code).map_err(|_| last_error())
}

/// The size of the list of extended attribute names of `name` in `dir`; of a symlink itself; of `dir` itself if
/// `name` is empty. Linux 6.13 and newer, else `NOSYS`.
pub(crate) fn listxattrat_size(dir: BorrowedFd<'_>, name: &CStr) -> Outcome<usize> {
    let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;
    // SAFETY: `name` is a terminated string that outlives the call; a null list of size 0 only queries the size.
    let code = unsafe {
        libc::syscall(SYS_LISTXATTRAT, dir.as_raw_fd(), name.as_ptr(), flags, ptr::null_mut::<u8>(), 0_usize)
    };
    outcome(code)
}

/// Changes the permission bits of the object behind `fd`, which may be an `O_PATH` descriptor. Linux 6.6 and newer,
/// else `NOSYS`.
pub(crate) fn chmod_path_fd(fd: BorrowedFd<'_>, mode: u32) -> Outcome<()> {
    // SAFETY: the empty name is a terminated static string; nothing else is a pointer.
    let code = unsafe {
        libc::syscall(libc::SYS_fchmodat2, fd.as_raw_fd(), c"".as_ptr(), mode, libc::AT_EMPTY_PATH)
    };
    outcome(code).map(drop)
}

/// Starts write-back of this range of a file, without waiting.
pub(crate) fn begin_write_back(fd: BorrowedFd<'_>, range: Range<u64>) -> Outcome<()> {
    let signed = |number: u64| libc::off64_t::try_from(number).map_err(|_| Errno::INVAL);
    let (start, length) = (signed(range.start)?, signed(range.end.saturating_sub(range.start))?);
    // SAFETY: no pointers; the descriptor is open for the time of the call.
    let code = unsafe { libc::sync_file_range(fd.as_raw_fd(), start, length, libc::SYNC_FILE_RANGE_WRITE) };
    outcome(code.into()).map(drop)
}

/// Sets the calling thread's user id for file access; returns the previous one. The kernel reports a failure only
/// by not changing it.
pub(crate) fn set_fsuid(uid: u32) -> u32 {
    // SAFETY: no pointers; the raw call changes the calling thread alone.
    unsafe { libc::syscall(libc::SYS_setfsuid, uid) as u32 }
}

/// Sets the calling thread's group id for file access; returns the previous one.
pub(crate) fn set_fsgid(gid: u32) -> u32 {
    // SAFETY: as for `set_fsuid`.
    unsafe { libc::syscall(libc::SYS_setfsgid, gid) as u32 }
}

/// Gives the calling thread its own umask and working directory.
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

/// Takes or releases a range for the open file description of `fd`, without waiting.
pub(crate) fn set_ofd_lock(fd: BorrowedFd<'_>, lock: Flock) -> Outcome<()> {
    ofd_lock(fd, libc::F_OFD_SETLK, lock).map(drop)
}

/// Returns a lock that conflicts with `lock`; its kind is `F_UNLCK` if there is none.
pub(crate) fn test_ofd_lock(fd: BorrowedFd<'_>, lock: Flock) -> Outcome<Flock> {
    ofd_lock(fd, libc::F_OFD_GETLK, lock)
}

/// The longest file handle (`MAX_HANDLE_SZ`), in bytes.
pub(crate) const HANDLE_BYTES_MAX: usize = 128;

/// A file handle in the kernel's layout, with room for the longest.
#[repr(C)]
struct RawHandle {
    bytes: u32,
    kind: i32,
    opaque: [u8; HANDLE_BYTES_MAX],
}

/// The descriptor that a call returned.
fn new_fd(code: libc::c_long) -> Outcome<OwnedFd> {
    let number = i32::try_from(outcome(code)?).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel has just created this descriptor for the caller, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Creates an event queue; `flags` are those of `fanotify_init`.
pub(crate) fn fanotify_init(flags: u32) -> Outcome<OwnedFd> {
    // SAFETY: no pointers.
    let code = unsafe { libc::fanotify_init(flags, (libc::O_RDONLY | libc::O_CLOEXEC) as libc::c_uint) };
    new_fd(code.into())
}

/// Adds or removes a mark for `dir`; `flags` and `mask` are those of `fanotify_mark`.
pub(crate) fn fanotify_mark(
    group: BorrowedFd<'_>,
    flags: u32,
    mask: u64,
    dir: BorrowedFd<'_>,
) -> Outcome<()> {
    // SAFETY: the name is a terminated static string; nothing else is a pointer.
    let code = unsafe { libc::fanotify_mark(group.as_raw_fd(), flags, mask, dir.as_raw_fd(), c".".as_ptr()) };
    outcome(code.into()).map(drop)
}

/// The same for the object at this path.
pub(crate) fn fanotify_mark_path(group: BorrowedFd<'_>, flags: u32, mask: u64, path: &CStr) -> Outcome<()> {
    // SAFETY: the path is terminated and outlives the call; nothing else is a pointer.
    let code = unsafe { libc::fanotify_mark(group.as_raw_fd(), flags, mask, libc::AT_FDCWD, path.as_ptr()) };
    outcome(code.into()).map(drop)
}

/// The handle of the object behind `fd`: its type and its bytes.
pub(crate) fn name_to_handle(fd: BorrowedFd<'_>) -> Outcome<(i32, Vec<u8>)> {
    let mut raw = RawHandle { bytes: HANDLE_BYTES_MAX as u32, kind: 0, opaque: [0; HANDLE_BYTES_MAX] };
    let mut mount = 0_i32;
    // SAFETY: the name is a terminated static string. The handle has as much room as its first field states. The
    // handle and the mount's number are on this stack frame.
    let code = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            fd.as_raw_fd(),
            c"".as_ptr(),
            ptr::from_mut(&mut raw),
            ptr::from_mut(&mut mount),
            libc::AT_EMPTY_PATH,
        )
    };
    outcome(code)?;
    let bytes = raw.opaque.get(..raw.bytes as usize).ok_or(Errno::OVERFLOW)?;
    Ok((raw.kind, bytes.to_vec()))
}

/// Opens the object of this handle with `O_PATH`; `mount` is an open descriptor on its file system. `STALE`: the
/// object is gone; `PERM`: not permitted.
pub(crate) fn open_by_handle(mount: BorrowedFd<'_>, kind: i32, bytes: &[u8]) -> Outcome<OwnedFd> {
    let mut raw = RawHandle { bytes: 0, kind, opaque: [0; HANDLE_BYTES_MAX] };
    raw.opaque.get_mut(..bytes.len()).ok_or(Errno::OVERFLOW)?.copy_from_slice(bytes);
    raw.bytes = bytes.len() as u32;
    let flags = libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the handle is on this stack frame and has as many bytes as its first field states.
    let code = unsafe {
        libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), ptr::from_mut(&mut raw), flags)
    };
    new_fd(code)
}
