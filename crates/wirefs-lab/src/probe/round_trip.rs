//! How long a question and its answer take.

use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use super::connect;
use crate::error::LabError;
use crate::lab::Host;

const WHAT: &str = "the round trip";
/// Bytes of a question and of an answer.
const MESSAGE_BYTES: usize = 64;

/// Plays `count` rounds of ping-pong over one TCP connection; gives the round trips, shortest first.
///
/// # Errors
/// [`LabError::Probe`] when the connection fails or stands still.
pub fn round_trips(
    from: &Host,
    to: &Host,
    address: Ipv4Addr,
    count: usize,
) -> Result<Vec<Duration>, LabError> {
    let ends = connect(WHAT, from, to, address)?;
    let (mut near, mut far) = (ends.near, ends.far);
    let played = thread::scope(|scope| {
        // It ends when the asking side hangs up.
        scope.spawn(move || {
            let mut message = [0; MESSAGE_BYTES];
            while far.read_exact(&mut message).and_then(|()| far.write_all(&message)).is_ok() {}
        });
        let play = |_| -> io::Result<Duration> {
            let mut message = [0x5A; MESSAGE_BYTES];
            let begin = Instant::now();
            near.write_all(&message)?;
            near.read_exact(&mut message)?;
            Ok(begin.elapsed())
        };
        let played: io::Result<Vec<Duration>> = (0..count).map(play).collect();
        drop(near);
        played
    });
    let mut spans = played.map_err(|error| LabError::Probe { what: WHAT, problem: error.to_string() })?;
    spans.sort_unstable();
    Ok(spans)
}
