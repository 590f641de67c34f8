//! Measures a host before it gets blocks.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_raw::{EchoSequence, EchoSocket, PacketBatch, RawError};

use crate::limits::{SURVEY_LOSS_MAX, SURVEY_PACKETS, SURVEY_STEP, SURVEY_TIMEOUT};

/// The result of a survey.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostSurvey {
    /// The host.
    pub host: IpAddr,
    /// The largest payload that comes back whole, in bytes.
    pub payload_bytes: usize,
    /// The minimum RTT.
    pub rtt_min: Duration,
    /// The median RTT.
    pub rtt_median: Duration,
    /// The part of the packets that did not come back.
    pub loss: f64,
}

/// The reason why a host cannot hold blocks.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The host is unreachable or does not answer.
    #[error(transparent)]
    Raw(#[from] RawError),
    /// The host truncates or drops large packets.
    #[error(
        "{host} echoes only {payload_bytes} bytes of a ping whole, and a block takes {needed_bytes}: \
         it, or a firewall on the path, cuts or drops large pings; name another host"
    )]
    NotWhole {
        /// The host.
        host: IpAddr,
        /// The largest payload that comes back, in bytes.
        payload_bytes: usize,
        /// The smallest usable payload in bytes.
        needed_bytes: usize,
    },
    /// The host returns other bytes.
    #[error(
        "{host} answers pings with other bytes than it was sent, so it cannot hold data; name another host"
    )]
    Changed {
        /// The host.
        host: IpAddr,
    },
    /// Too many packets are lost.
    #[error(
        "{lost} of {sent} pings to {host} were lost at {rate} a second: it limits pings, or the path to it is bad; \
         name another host"
    )]
    Lossy {
        /// The host.
        host: IpAddr,
        /// Packets that did not come back.
        lost: usize,
        /// Packets sent.
        sent: usize,
        /// Packets per second.
        rate: u64,
    },
    /// Waiting for a reply failed.
    #[error("cannot wait for an echo reply: {0}")]
    Wait(#[source] std::io::Error),
}

/// Measures a host: the payload that it echoes whole, the RTT, and the loss. `needed_bytes`: the smallest
/// usable payload.
///
/// # Cost
/// About one RTT and 40 ms without loss; [`SURVEY_PACKETS`] full-size packets and those of the path MTU
/// discovery.
///
/// # Errors
/// [`SurveyError`]: the host cannot hold blocks.
pub(crate) fn survey(
    socket: &EchoSocket,
    payload_bytes_max: usize,
    needed_bytes: usize,
) -> Result<HostSurvey, SurveyError> {
    let host = socket.host();
    let payload_bytes = socket.payload_bytes(socket.measure_mtu(SURVEY_TIMEOUT)?).min(payload_bytes_max);
    if payload_bytes < needed_bytes {
        return Err(SurveyError::NotWhole { host, payload_bytes, needed_bytes });
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
        probe.receive_for(SURVEY_STEP)?;
    }
    let end = Instant::now() + SURVEY_TIMEOUT;
    while probe.times.len() < SURVEY_PACKETS && Instant::now() < end {
        probe.receive_for(end.saturating_duration_since(Instant::now()))?;
    }
    probe.times.sort_unstable();
    let lost = SURVEY_PACKETS - probe.times.len();
    let loss = lost as f64 / SURVEY_PACKETS as f64;
    match (probe.times.first(), probe.times.get(probe.times.len() / 2)) {
        (Some(&rtt_min), Some(&rtt_median)) if loss <= SURVEY_LOSS_MAX => {
            Ok(HostSurvey { host, payload_bytes, rtt_min, rtt_median, loss })
        }
        _ => {
            let rate = 1_000_000 / u64::try_from(SURVEY_STEP.as_micros()).unwrap_or(1).max(1);
            Err(SurveyError::Lossy { host, lost, sent: SURVEY_PACKETS, rate })
        }
    }
}

/// Full-size packets in flight: a number, then a pattern.
struct Probe<'a> {
    socket: &'a EchoSocket,
    payload_bytes: usize,
    sent: Vec<Instant>,
    seen: BTreeSet<usize>,
    times: Vec<Duration>,
}

/// Returns the byte of a packet at a place.
fn pattern(number: usize, place: usize) -> u8 {
    (number.wrapping_mul(31) ^ place.wrapping_mul(7) ^ (place >> 8)) as u8
}

impl Probe<'_> {
    fn send(&mut self, number: usize) -> Result<(), SurveyError> {
        let mut batch = PacketBatch::new(self.payload_bytes);
        let bytes = self.payload_bytes;
        batch.push(|room| {
            let payload = room.get_mut(..bytes)?;
            for (place, byte) in payload.iter_mut().enumerate() {
                *byte = pattern(number, place);
            }
            *payload.first_mut()? = number as u8;
            Some((bytes, EchoSequence(number as u16)))
        });
        self.sent.push(Instant::now());
        self.socket.send(&mut batch)?;
        Ok(())
    }

    /// Receives packets for at most `patience`.
    fn receive_for(&mut self, timeout_span: Duration) -> Result<(), SurveyError> {
        let failed = |errno: rustix::io::Errno| SurveyError::Wait(errno.into());
        let timeout = Timespec::try_from(timeout_span).map_err(|_| failed(rustix::io::Errno::INVAL))?;
        match poll(&mut [PollFd::new(self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let now = Instant::now();
        let mut batch = PacketBatch::new(self.payload_bytes);
        self.socket.receive(&mut batch, SURVEY_PACKETS)?;
        let (bytes, mut is_changed) = (self.payload_bytes, false);
        batch.exchange(|payload, waited| {
            let number = payload.first().copied().map_or(usize::MAX, usize::from);
            // Late packets of the MTU discovery have another size, or a number that was not sent.
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
        if is_changed { Err(SurveyError::Changed { host: self.socket.host() }) } else { Ok(()) }
    }
}
