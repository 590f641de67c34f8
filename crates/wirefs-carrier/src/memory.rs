//! Two carriers joined back to back: both ends in one process.

use std::io;
use std::os::unix::net::UnixStream;

use crate::carrier::{Carrier, PeerInfo};
use crate::stream;

/// Makes two carriers; what one sends the other receives.
///
/// # Errors
/// The process has no descriptors left.
pub fn pair() -> io::Result<(Carrier, Carrier)> {
    let (left, right) = UnixStream::pair()?;
    let carrier = |end: UnixStream, name| stream::over_socket(end.into(), PeerInfo::plain("memory", name));
    Ok((carrier(left, "left"), carrier(right, "right")))
}
