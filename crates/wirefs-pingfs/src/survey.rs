//! Measuring a host before it is trusted with blocks.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_raw::{Batch, EchoSocket, RawError, Sequence};

use crate::limits::{SURVEY_LOSS_MAX, SURVEY_PACKETS, SURVEY_PATIENCE, SURVEY_STEP};

/// What was found out about a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survey {
    /// The host.
    pub host: IpAddr,
    /// The largest payload that comes back whole, in bytes.
    pub payload_bytes: usize,
    /// There and back at best.
    pub rtt_min: Duration,
    /// There and back of the middle one of all.
    pub rtt_median: Duration,
    /// The part of the packets that did not come back.
    pub loss: f64,
}

/// Why a host cannot hold blocks.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It cannot be reached, or does not answer.
    #[error(transparent)]
    Raw(#[from] RawError),
    /// It does not send back all that it is sent.
    #[error(
        "{host} echoes only {payload_bytes} bytes of a ping whole, and a block takes {needed_bytes}: \
         it, or a firewall on the way, cuts or drops large pings; name another host"
    )]
    NotWhole {
        /// The host.
        host: IpAddr,
        /// What comes back, in bytes.
        payload_bytes: usize,
        /// What would have to, in bytes.
        needed_bytes: usize,
    },
    /// It sends back something else.
    #[error(
        "{host} answers pings with other bytes than it was sent, so nothing can be kept there; name another host"
    )]
    Changed {
        /// The host.
        host: IpAddr,
    },
    /// Too much goes missing.
    #[error(
        "{lost} of {sent} pings to {host} were lost at {rate} a second: it limits pings, or the way to it is bad; \
         name another host"
    )]
    Lossy {
        /// The host.
        host: IpAddr,
        /// Packets that did not come back.
        lost: usize,
        /// Packets sent.
        sent: usize,
        /// How many a second.
        rate: u64,
    },
    /// The wait for a reply failed.
    #[error("cannot wait for an echo reply: {0}")]
    Wait(#[source] std::io::Error),
}

/// Measures a host: the payload that it echoes whole, the time that takes, and what gets lost.
///
/// # Cost
/// About a round trip and 40 ms where nothing is lost; [`SURVEY_PACKETS`] whole payloads and what the path's MTU takes.
///
/// # Errors
/// [`Refused`]: blocks cannot be kept there. `needed_bytes`: the smallest payload of any use.
pub(crate) fn survey(
    socket: &EchoSocket,
    payload_bytes_max: usize,
    needed_bytes: usize,
) -> Result<Survey, Refused> {
    let host = socket.host();
    let payload_bytes = socket.payload_bytes(socket.measure_mtu(SURVEY_PATIENCE)?).min(payload_bytes_max);
    if payload_bytes < needed_bytes {
        return Err(Refused::NotWhole { host, payload_bytes, needed_bytes });
    }
    let mut probe = Probe {
        socket,
        payload_bytes,
        sent: Vec::with_capacity(SURVEY_PACKETS),
        seen: BTreeSet::new(),
        times: Vec::new(),
    };
    for number in 0..SURVEY_PACKETS {
        probe.send(number)?;
        probe.listen(SURVEY_STEP)?;
    }
    let end = Instant::now() + SURVEY_PATIENCE;
    while probe.times.len() < SURVEY_PACKETS && Instant::now() < end {
        probe.listen(end.saturating_duration_since(Instant::now()))?;
    }
    probe.times.sort_unstable();
    let lost = SURVEY_PACKETS - probe.times.len();
    let loss = lost as f64 / SURVEY_PACKETS as f64;
    match (probe.times.first(), probe.times.get(probe.times.len() / 2)) {
        (Some(&rtt_min), Some(&rtt_median)) if loss <= SURVEY_LOSS_MAX => {
            Ok(Survey { host, payload_bytes, rtt_min, rtt_median, loss })
        }
        _ => {
            let rate = 1_000_000 / u64::try_from(SURVEY_STEP.as_micros()).unwrap_or(1).max(1);
            Err(Refused::Lossy { host, lost, sent: SURVEY_PACKETS, rate })
        }
    }
}

/// Whole payloads under way, each with its number in front and a pattern behind.
struct Probe<'a> {
    socket: &'a EchoSocket,
    payload_bytes: usize,
    sent: Vec<Instant>,
    seen: BTreeSet<usize>,
    times: Vec<Duration>,
}

/// The byte that a packet has in a place.
fn pattern(number: usize, place: usize) -> u8 {
    (number.wrapping_mul(31) ^ place.wrapping_mul(7) ^ (place >> 8)) as u8
}

impl Probe<'_> {
    fn send(&mut self, number: usize) -> Result<(), Refused> {
        let mut batch = Batch::new(self.payload_bytes);
        let bytes = self.payload_bytes;
        batch.push(|room| {
            let payload = room.get_mut(..bytes)?;
            for (place, byte) in payload.iter_mut().enumerate() {
                *byte = pattern(number, place);
            }
            *payload.first_mut()? = number as u8;
            Some((bytes, Sequence(number as u16)))
        });
        self.sent.push(Instant::now());
        self.socket.send(&mut batch)?;
        Ok(())
    }

    /// Takes what comes within `patience`.
    fn listen(&mut self, patience: Duration) -> Result<(), Refused> {
        let failed = |errno: rustix::io::Errno| Refused::Wait(errno.into());
        let timeout = Timespec::try_from(patience).map_err(|_| failed(rustix::io::Errno::INVAL))?;
        match poll(&mut [PollFd::new(self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let now = Instant::now();
        let mut batch = Batch::new(self.payload_bytes);
        self.socket.receive(&mut batch, SURVEY_PACKETS)?;
        let (bytes, mut is_changed) = (self.payload_bytes, false);
        batch.exchange(|payload, waited| {
            let number = payload.first().copied().map_or(usize::MAX, usize::from);
            // What is left of measuring the path has another size, or no number that was sent.
            if payload.len() == bytes
                && let Some(&sent) = self.sent.get(number)
                && self.seen.insert(number)
            {
                let mut rest = payload.iter().enumerate().skip(1);
                is_changed |= rest.any(|(place, &byte)| byte != pattern(number, place));
                self.times.push((now - sent).saturating_sub(waited));
            }
            None
        });
        if is_changed { Err(Refused::Changed { host: self.socket.host() }) } else { Ok(()) }
    }
}
