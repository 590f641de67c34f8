//! The rate of one TCP connection: the baseline of all transfers.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown};
use std::thread;
use std::time::{Duration, Instant};

use super::connect;
use crate::error::LabError;
use crate::lab::Host;

const MEASUREMENT: &str = "the TCP rate";
/// Bytes of one write, and of the buffer that reads.
const CHUNK_BYTES: usize = 256 << 10;

/// The result of a TCP transfer at full speed.
#[derive(Clone, Copy, Debug)]
pub struct TcpRun {
    /// Payload bytes that arrived in the measured time.
    pub bytes: u64,
    /// The measured time.
    pub span: Duration,
}

impl TcpRun {
    /// Returns the payload bits per second.
    pub fn bits_per_second(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.span.as_secs_f64()
    }
}

/// Sends from `from` to `to` at full speed; counts the bytes that arrive in `span` after `warm_up`.
///
/// # Errors
/// [`LabError::Probe`] if the connection fails or stalls.
pub fn tcp_rate(
    from: &Host,
    to: &Host,
    address: Ipv4Addr,
    warm_up: Duration,
    span: Duration,
) -> Result<TcpRun, LabError> {
    let ends = connect(MEASUREMENT, from, to, address)?;
    let (mut near, mut far) = (ends.near, ends.far);
    let counted = thread::scope(|scope| {
        // Ends when the receiver disconnects.
        scope.spawn(move || {
            let chunk = vec![0x5A; CHUNK_BYTES];
            while near.write_all(&chunk).is_ok() {}
        });
        let counted = count_until(&mut far, Instant::now() + warm_up).and_then(|_| {
            let begin = Instant::now();
            let bytes = count_until(&mut far, begin + span)?;
            Ok(TcpRun { bytes, span: begin.elapsed() })
        });
        far.shutdown(Shutdown::Both).ok();
        // Closing with unread data resets the connection, which ends the sender at once.
        drop(far);
        counted
    });
    counted.map_err(|error| LabError::Probe { measurement: MEASUREMENT, problem: error.to_string() })
}

fn count_until(stream: &mut impl io::Read, end: Instant) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    while Instant::now() < end {
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes += count as u64,
        }
    }
    Ok(bytes)
}

/// Sends `bytes` from `from` to `to` over a new connection, and waits until the receiver has confirmed them all. The
/// time starts when the connection is established, as for a mount.
///
/// # Cost
/// One round trip to connect, and one for the last byte and its confirmation, in addition to the transfer.
///
/// # Errors
/// [`LabError::Probe`] if the connection fails or stalls.
pub fn tcp_transfer(from: &Host, to: &Host, address: Ipv4Addr, bytes: u64) -> Result<TcpRun, LabError> {
    let ends = connect(MEASUREMENT, from, to, address)?;
    let (mut near, mut far) = (ends.near, ends.far);
    let begin = Instant::now();
    let transferred = thread::scope(|scope| {
        let receiver = scope.spawn(move || -> io::Result<u64> {
            let mut buffer = vec![0; CHUNK_BYTES];
            let mut left = bytes;
            while left > 0 {
                match far.read(&mut buffer)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    count => left = left.saturating_sub(count as u64),
                }
            }
            far.write_all(&[1])?;
            Ok(bytes)
        });
        let sent = (|| -> io::Result<()> {
            let chunk = vec![0x5A; CHUNK_BYTES];
            let mut left = bytes;
            while left > 0 {
                let part = left.min(CHUNK_BYTES as u64);
                near.write_all(chunk.get(..part as usize).unwrap_or(&chunk))?;
                left -= part;
            }
            near.read_exact(&mut [0])
        })();
        // The shutdown ends a receiver that still waits.
        near.shutdown(Shutdown::Both).ok();
        let received = receiver.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked));
        sent.and(received)
    });
    transferred
        .map(|bytes| TcpRun { bytes, span: begin.elapsed() })
        .map_err(|error| LabError::Probe { measurement: MEASUREMENT, problem: error.to_string() })
}
