//! System calls without a safe wrapper: signals as a file descriptor.
#![expect(unsafe_code, reason = "blocking signals and reading them from a descriptor has no safe wrapper")]

use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};

/// The requests to end: interrupt, terminate, hang up.
const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The signals that end the program, read instead of handled.
#[derive(Debug)]
pub struct Signals {
    fd: std::fs::File,
}

impl Signals {
    /// Blocks the signals in this thread and the threads that it starts. Must be called before any thread is started.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn take() -> io::Result<Signals> {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initializes the set, and the others read or change the initialized set; all pointers are
        // to it or null, where null is allowed.
        let raw = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for number in ENDING {
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

    /// Blocks until one of them comes.
    ///
    /// # Errors
    /// The descriptor fails, which does not occur.
    pub fn wait(&self) -> io::Result<()> {
        let mut info = [0; std::mem::size_of::<libc::signalfd_siginfo>()];
        (&self.fd).read_exact(&mut info)
    }
}
