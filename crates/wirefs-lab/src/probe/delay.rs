//! How exactly the link keeps its delay, measured by datagrams that carry their time of sending.

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

const WHAT: &str = "the delay error";
/// Payload bytes of a datagram, and the bytes of its frame: a full one at the MTU of Ethernet.
const PAYLOAD_BYTES: usize = 1_472;
const FRAME_BYTES: u64 = 1_514;
/// The receiver's buffer: a tenth of a second at 500 Mbit/s, so that a late receiver loses nothing.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;
/// After this long without a datagram, none is under way any more (the longest delay measured is a second).
const QUIET: Duration = Duration::from_millis(1_500);

/// How late datagrams arrived, beyond the delay of the link.
#[derive(Clone, Debug)]
pub struct DelayErrors {
    /// Nanoseconds beyond the delay, smallest first; negative would be too early.
    sorted_ns: Vec<i64>,
    /// Datagrams sent.
    pub sent: usize,
}

impl DelayErrors {
    /// Datagrams that arrived.
    pub fn received(&self) -> usize {
        self.sorted_ns.len()
    }

    /// The error in milliseconds that this part of the datagrams, `0.0..=1.0`, stayed below or at.
    pub fn quantile_ms(&self, part: f64) -> f64 {
        let last = self.sorted_ns.len().saturating_sub(1);
        // Both factors are not negative, so the index is at most `last`.
        let index = (part.clamp(0.0, 1.0) * last as f64).round() as usize;
        self.sorted_ns.get(index).map_or(f64::NAN, |ns| *ns as f64 / 1e6)
    }
}

/// Sends full datagrams at `rate_bits` per second for `span` and compares their time under way with `delay`.
///
/// The error includes waking the receiving thread, as a program behind a real link would see it.
///
/// # Errors
/// [`LabError::Probe`] when nothing arrives or a socket fails.
pub fn delay_errors(
    (from, from_address): (&Host, Ipv4Addr),
    (to, to_address): (&Host, Ipv4Addr),
    delay: Duration,
    rate_bits: u64,
    span: Duration,
) -> Result<DelayErrors, LabError> {
    let failed = |error: std::io::Error| LabError::Probe { what: WHAT, problem: error.to_string() };
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
        return Err(LabError::Probe { what: WHAT, problem: "nothing arrived".to_owned() });
    }
    spans.sort_unstable();
    // Spans of a probe are seconds, far inside the range.
    let delay_ns = delay.as_nanos() as i64;
    Ok(DelayErrors { sorted_ns: spans.into_iter().map(|ns| ns as i64 - delay_ns).collect(), sent })
}

/// Sends `count` datagrams, each at its own time; gives how many left.
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

/// Receives up to `count` datagrams; gives their nanoseconds under way.
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
    // Woken early by a signal, the datagram leaves early, with its true time.
    clock_nanosleep_absolute(ClockId::Monotonic, &until).ok();
}
