//! Why a request got no ordinary reply, and the one place where the system's error numbers become the protocol's.

use wirefs_op::Errno;
use wirefs_server::{Parked, Stopped};

/// The end of a request without its ordinary last reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It failed; the client is to hear of it.
    Errno(Errno),
    /// Nobody wants the rest.
    Stopped,
    /// Others must hear of it first: nothing was changed, and it begins anew later.
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

/// The protocol's error for the system's; numbers that the protocol does not know become [`Errno::Io`].
pub(crate) fn errno(error: rustix::io::Errno) -> Errno {
    u16::try_from(error.raw_os_error()).map_or(Errno::Io, Errno::from_code)
}

/// Calls again while a signal interrupts. Signals do not come often enough to need a bound.
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
