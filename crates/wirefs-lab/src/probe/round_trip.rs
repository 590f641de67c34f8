//! The time of a request and its reply.

use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use super::connect;
use crate::error::LabError;
use crate::lab::Host;

const MEASUREMENT: &str = "the round trip";
/// Bytes of a request and of a reply.
const MESSAGE_BYTES: usize = 64;

/// Sends `count` requests over one TCP connection; returns the round-trip times in ascending order.
///
/// # Errors
/// [`LabError::Probe`] if the connection fails or stalls.
pub fn round_trips(
    from: &Host,
    to: &Host,
    address: Ipv4Addr,
    count: usize,
) -> Result<Vec<Duration>, LabError> {
    let ends = connect(MEASUREMENT, from, to, address)?;
    let (mut near, mut far) = (ends.near, ends.far);
    let exchanged = thread::scope(|scope| {
        // Ends when the requester disconnects.
        scope.spawn(move || {
            let mut message = [0; MESSAGE_BYTES];
            while far.read_exact(&mut message).and_then(|()| far.write_all(&message)).is_ok() {}
        });
        let exchange = |_| -> io::Result<Duration> {
            let mut message = [0x5A; MESSAGE_BYTES];
            let begin = Instant::now();
            near.write_all(&message)?;
            near.read_exact(&mut message)?;
            Ok(begin.elapsed())
        };
        let exchanged: io::Result<Vec<Duration>> = (0..count).map(exchange).collect();
        drop(near);
        exchanged
    });
    let mut spans = exchanged
        .map_err(|error| LabError::Probe { measurement: MEASUREMENT, problem: error.to_string() })?;
    spans.sort_unstable();
    Ok(spans)
}
