//! The failures of requests, and the conversion of the system's error numbers.

use wirefs_op::Errno;
use wirefs_server::{Parked, Stopped};

/// The end of a request without its ordinary last reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The request failed with this error, which is sent to the client.
    Errno(Errno),
    /// No further replies are wanted.
    Stopped,
    /// Other clients must answer a recall first. Nothing was changed, and the request starts again later.
    Parked,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure::Errno(errno)
    }
}

impl From<Stopped> for Failure {
    fn from(_: Stopped) -> Failure {
        Failure::Stopped
    }
}

impl From<Parked> for Failure {
    fn from(_: Parked) -> Failure {
        Failure::Parked
    }
}

impl From<rustix::io::Errno> for Failure {
    fn from(error: rustix::io::Errno) -> Failure {
        Failure::Errno(errno(error))
    }
}

/// The protocol's error number; unknown numbers of the system become [`Errno::Io`].
pub(crate) fn errno(error: rustix::io::Errno) -> Errno {
    u16::try_from(error.raw_os_error()).map_or(Errno::Io, Errno::from_code)
}

/// Repeats a call that a signal interrupted. Signals are too rare to need a limit.
pub(crate) fn uninterrupted<T>(
    mut call: impl FnMut() -> Result<T, rustix::io::Errno>,
) -> Result<T, rustix::io::Errno> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}
