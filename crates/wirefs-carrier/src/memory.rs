//! Two joined carriers in one process.

use std::io;
use std::os::unix::net::UnixStream;

use crate::carrier::{Carrier, PeerInfo};
use crate::stream;

/// Returns two carriers; each receives the other's frames.
///
/// # Errors
/// The process has no file descriptors left.
pub fn pair() -> io::Result<(Carrier, Carrier)> {
    let (left, right) = UnixStream::pair()?;
    let carrier = |end: UnixStream, name| stream::over_socket(end.into(), PeerInfo::plain("memory", name));
    Ok((carrier(left, "left"), carrier(right, "right")))
}
