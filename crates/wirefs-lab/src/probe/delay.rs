//! The error of the link's delay, measured by datagrams that carry their send time.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};
use wirefs_op::Time;

use crate::emulator::now;
use crate::error::LabError;
use crate::lab::Host;

const MEASUREMENT: &str = "the delay error";
/// Payload bytes of a datagram, and bytes of its frame, which is full at the MTU of Ethernet.
const PAYLOAD_BYTES: usize = 1_472;
const FRAME_BYTES: u64 = 1_514;
/// The receive buffer: a tenth of a second at 500 Mbit/s, so that a late receiver loses nothing.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;
/// After this time without a datagram none is in flight (the maximum measured delay is one second).
const QUIET: Duration = Duration::from_millis(1_500);

/// The lateness of datagrams, relative to the delay of the link.
#[derive(Clone, Debug)]
pub struct DelayErrors {
    /// Nanoseconds beyond the delay, in ascending order; negative values are too early.
    sorted_ns: Vec<i64>,
    /// Datagrams sent.
    pub sent: usize,
}

impl DelayErrors {
    /// Returns the number of datagrams that arrived.
    pub fn received(&self) -> usize {
        self.sorted_ns.len()
    }

    /// Returns a quantile of the error in milliseconds; `part` is in `0.0..=1.0`.
    pub fn quantile_ms(&self, part: f64) -> f64 {
        let last = self.sorted_ns.len().saturating_sub(1);
        // Both factors are nonnegative, so the index is at most `last`.
        let index = (part.clamp(0.0, 1.0) * last as f64).round() as usize;
        self.sorted_ns.get(index).map_or(f64::NAN, |ns| *ns as f64 / 1e6)
    }
}

/// Sends full datagrams at `rate_bits` per second for `span` and compares their time in flight with `delay`.
///
/// The error includes waking the receiving thread, as for a program on a real link.
///
/// # Errors
/// [`LabError::Probe`] if nothing arrives or a socket fails.
pub fn delay_errors(
    (from, from_address): (&Host, Ipv4Addr),
    (to, to_address): (&Host, Ipv4Addr),
    delay: Duration,
    rate_bits: u64,
    span: Duration,
) -> Result<DelayErrors, LabError> {
    let failed =
        |error: std::io::Error| LabError::Probe { measurement: MEASUREMENT, problem: error.to_string() };
    let receiver = to.run(|| UdpSocket::bind((to_address, 0)))?.map_err(failed)?;
    set_socket_recv_buffer_size_force(&receiver, RECEIVE_BUFFER_BYTES)
        .map_err(|error| failed(error.into()))?;
    receiver.set_read_timeout(Some(QUIET)).map_err(failed)?;
    let sender = from.run(|| UdpSocket::bind((from_address, 0)))?.map_err(failed)?;
    sender.connect(receiver.local_addr().map_err(failed)?).map_err(failed)?;
    let gap = Duration::from_nanos(FRAME_BYTES * 8 * 1_000_000_000 / rate_bits.max(1));
    let count = usize::try_from(span.as_nanos() / gap.as_nanos().max(1)).unwrap_or(usize::MAX);

    let stopped = AtomicBool::new(false);
    let (sent, mut spans) = thread::scope(|scope| {
        let sending = scope.spawn(|| send(&sender, count, gap, &stopped));
        let spans = receive(&receiver, count);
        stopped.store(true, Ordering::Relaxed);
        (sending.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked)), spans)
    });
    if spans.is_empty() {
        return Err(LabError::Probe { measurement: MEASUREMENT, problem: "nothing arrived".to_owned() });
    }
    spans.sort_unstable();
    // Times of a probe are seconds, far inside the range.
    let delay_ns = delay.as_nanos() as i64;
    Ok(DelayErrors { sorted_ns: spans.into_iter().map(|ns| ns as i64 - delay_ns).collect(), sent })
}

/// Sends `count` datagrams, each at its own time; returns the number sent.
fn send(sender: &UdpSocket, count: usize, gap: Duration, stopped: &AtomicBool) -> usize {
    let mut payload = [0; PAYLOAD_BYTES];
    let mut at = now();
    let mut sent = 0;
    for _ in 0..count {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        at = at + gap;
        sleep_until(at);
        if let Some(stamp) = payload.first_chunk_mut() {
            *stamp = now().0.to_le_bytes();
        }
        sent += usize::from(sender.send(&payload).is_ok());
    }
    sent
}

/// Receives up to `count` datagrams; returns their nanoseconds in flight.
fn receive(receiver: &UdpSocket, count: usize) -> Vec<u64> {
    let mut spans = Vec::with_capacity(count);
    let mut payload = [0; PAYLOAD_BYTES];
    while spans.len() < count {
        if receiver.recv(&mut payload).is_err() {
            break;
        }
        let arrived = now();
        let stamp = payload.first_chunk().map_or(arrived, |stamp| Time(u64::from_le_bytes(*stamp)));
        spans.push(arrived.0.saturating_sub(stamp.0));
    }
    spans
}

fn sleep_until(at: Time) {
    let until = Timespec { tv_sec: (at.0 / 1_000_000_000) as i64, tv_nsec: (at.0 % 1_000_000_000) as i64 };
    // A signal may end the sleep early; the datagram carries the true time anyway.
    clock_nanosleep_absolute(ClockId::Monotonic, &until).ok();
}
