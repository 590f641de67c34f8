//! System calls without a safe wrapper: signals as a file descriptor, the password database.
#![expect(
    unsafe_code,
    reason = "blocking signals, reading them, and the password database have no safe wrapper"
)]

use std::ffi::{CStr, OsStr};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Interrupt from the terminal.
pub(crate) const INTERRUPT: i32 = libc::SIGINT;
/// Request to end.
pub(crate) const TERMINATE: i32 = libc::SIGTERM;
/// Quit from the terminal.
pub(crate) const QUIT: i32 = libc::SIGQUIT;
/// Suspension from the terminal.
pub(crate) const SUSPEND: i32 = libc::SIGTSTP;
/// The terminal is closed.
pub(crate) const HANG_UP: i32 = libc::SIGHUP;

/// Signals that are read instead of handled.
#[derive(Debug)]
pub(crate) struct Signals {
    fd: std::fs::File,
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Signals {
    /// Blocks these signals in this thread and the threads that it starts, except ignored ones (as with `nohup`). Must
    /// be called before any thread is started. Child programs inherit the block.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub(crate) fn take(numbers: &[i32]) -> io::Result<Signals> {
        let ignored = ignored();
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initializes the set, and the others read or change the initialized set; all pointers are
        // to it or null, where null is allowed.
        let raw = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for &number in numbers.iter().filter(|&&number| ignored & (1 << (number - 1)) == 0) {
                libc::sigaddset(set.as_mut_ptr(), number);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC)
        };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: signalfd just created the descriptor, so it has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Signals { fd: fd.into() })
    }

    /// Blocks for the next signal and returns its number.
    ///
    /// # Errors
    /// The descriptor fails, which does not occur.
    pub(crate) fn wait(&self) -> io::Result<i32> {
        let mut info = [0; std::mem::size_of::<libc::signalfd_siginfo>()];
        (&self.fd).read_exact(&mut info)?;
        // The signal number comes first.
        let [a, b, c, d, ..] = info;
        Ok(i32::from_ne_bytes([a, b, c, d]))
    }
}

/// Marks inherited descriptors as close-on-exec: a background process would keep pipes, locks and directories of other
/// processes in use. No effect on Linux before 5.11.
pub(crate) fn keep_descriptors_from_children() {
    let (first, last, flags) = (3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: the call takes three numbers and accesses no memory; descriptors stay open and valid in this process.
    let _unknown = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
}

/// The maximum size of an entry of the password database, in bytes.
const ACCOUNT_BYTES_MAX: usize = 16 * 1024;

/// Returns the home directory of a user in the password database.
pub(crate) fn home_of(user: u32) -> Option<PathBuf> {
    let mut strings = vec![0_u8; ACCOUNT_BYTES_MAX];
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to values that outlive the call, and the length is that of `strings`.
    let error = unsafe {
        let (strings, length) = (strings.as_mut_ptr().cast(), strings.len());
        libc::getpwuid_r(user, entry.as_mut_ptr(), strings, length, &mut found)
    };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: without an error, `found` points to `entry`, whose `pw_dir` is a string with a NUL in `strings`.
    let home = unsafe { CStr::from_ptr((*found).pw_dir) };
    Some(PathBuf::from(OsStr::from_bytes(home.to_bytes())))
}

/// Returns the signals that this process ignores, with signal 1 as the lowest bit. A blocked signal would be read
/// although it is ignored.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}
