//! Copying a program to a host without wirefs, over the connection that then serves the mount.
//!
//! ```text
//!  remote   wirefs-missing Linux x86_64\n
//!  local    SIZE SHA256 ID\n, then SIZE bytes, compressed by gzip
//!  remote   the greeting of the copy, or the end with one of the statuses below
//! ```

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::program::Packed;
use crate::stream::wait;

/// Announces a host without wirefs; the rest of the line is `uname -sm`.
pub(super) const MISSING: &[u8] = b"wirefs-missing ";
/// The copy is given up if the host takes no byte for this long.
const STALL_MAX: Duration = Duration::from_secs(60);
/// Bytes that are sent between two reports of progress.
const STEP_BYTES: usize = 64 * 1024;

/// Statuses of the remote script, and their meaning.
const FAILURES: [(i32, &str); 5] = [
    (3, "it has no gzip, which a copy needs"),
    (4, "the copy does not start there; install a wirefs that was built for it"),
    (5, "no directory there takes a program: ~/.cache, /var/tmp, /tmp and /dev/shm were tried"),
    (6, "the copy could not be written there"),
    (8, "the copy arrived damaged; try again"),
];

/// Returns the meaning of an exit status during the copy.
pub(super) fn failure(status: i32) -> Option<&'static str> {
    FAILURES.iter().find(|(known, _)| *known == status).map(|(_, text)| *text)
}

/// The progress of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadProgress {
    /// `[user@]host`.
    pub login: String,
    /// Compressed bytes that were sent.
    pub sent: usize,
    /// All of them.
    pub of: usize,
}

/// A copy that failed on this side.
pub(super) enum UploadFailure {
    /// The host takes no more bytes.
    Stalled,
    /// The remote script has ended; its status says why.
    Ended,
    Io(io::Error),
}

/// Sends a program.
pub(super) fn send(
    socket: &OwnedFd,
    packed: &Packed,
    mut report: impl FnMut(usize, usize),
) -> Result<(), UploadFailure> {
    let of = packed.bytes.len();
    let head = format!("{of} {} {}\n", packed.hash, packed.id);
    send_all(socket, head.as_bytes())?;
    let mut sent = 0;
    report(sent, of);
    for chunk in packed.bytes.chunks(STEP_BYTES) {
        send_all(socket, chunk)?;
        sent += chunk.len();
        report(sent, of);
    }
    Ok(())
}

fn send_all(socket: &OwnedFd, mut bytes: &[u8]) -> Result<(), UploadFailure> {
    while !bytes.is_empty() {
        match rustix::net::send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::AGAIN) => {
                if !wait(socket, PollFlags::OUT, None, Some(STALL_MAX)).map_err(UploadFailure::Io)? {
                    return Err(UploadFailure::Stalled);
                }
            }
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(UploadFailure::Ended),
            Err(errno) => return Err(UploadFailure::Io(errno.into())),
        }
    }
    Ok(())
}
