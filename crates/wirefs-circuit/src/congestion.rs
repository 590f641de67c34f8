//! Congestion control and pacing of one path.
//!
//! Congestion is inferred from the delivery rate, not from loss: random loss of 1% does not reduce the rate.
//!
//! # Source
//! Cardwell and others, "BBR: congestion-based congestion control", ACM Queue 14 (2016): the maximum of
//! recent delivery rates times the minimum round-trip time; startup, drain, and a cycle of pacing gains.
//! Cheng and others, "Delivery rate estimation" (IETF draft), for the rate samples.

use std::collections::VecDeque;
use std::time::Duration;

use wirefs_op::Time;

use crate::limits::{BURST_MAX, PACKET_BYTES_BASE, WINDOW_PACKETS_MIN};

/// The window of the maximum filter, in round trips.
const MEMORY_ROUNDS: u64 = 10;
/// In percent. Doubles the rate in each round trip.
const STARTUP_GAIN: u64 = 277;
/// In percent. Drains the queue that startup created.
const DRAIN_GAIN: u64 = 36;
/// In percent, each for one round trip: probe for bandwidth, drain, cruise.
const CYCLE: [u64; 8] = [125, 75, 100, 100, 100, 100, 100, 100];
/// The minimum duration of a step of the cycle.
const STEP_MIN: Duration = Duration::from_millis(1);
/// Startup ends after this many rounds without growth.
const FLAT_ROUNDS: u32 = 3;
/// Allowance for acknowledgements in bursts, since hosts sleep: the window exceeds the bandwidth-delay
/// product by this much.
const ACK_AGGREGATION: Duration = Duration::from_millis(2);

/// The state of the rate estimator when a packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSnapshot {
    delivered: u64,
    delivered_at: Time,
    first_at: Time,
    is_app_limited: bool,
}

/// The phase of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    ProbeBandwidth { step: usize, since: Time },
}

/// Bandwidth estimate, congestion window and pacing of one path.
#[derive(Debug)]
pub(crate) struct CongestionControl {
    phase: Phase,
    /// The maximum filter: rates in bytes per second with their rounds, in descending order.
    max_rates: VecDeque<(u64, u64)>,
    round: u64,
    round_end: u64,
    flat_rate: u64,
    flat_rounds: u32,
    delivered: u64,
    delivered_at: Time,
    first_at: Time,
    /// Rate samples are application-limited until this many bytes are delivered.
    app_limited_until: Option<u64>,
    round_lost: u64,
    round_arrived: u64,
    next_send_at: Time,
}

impl CongestionControl {
    pub(crate) fn new() -> CongestionControl {
        CongestionControl {
            phase: Phase::Startup,
            max_rates: VecDeque::new(),
            round: 0,
            round_end: 0,
            flat_rate: 0,
            flat_rounds: 0,
            delivered: 0,
            delivered_at: Time::default(),
            first_at: Time::default(),
            app_limited_until: None,
            round_lost: 0,
            round_arrived: 0,
            next_send_at: Time::default(),
        }
    }

    /// Returns the estimated bandwidth in bytes per second; `None` before the first sample.
    pub(crate) fn bandwidth(&self) -> Option<u64> {
        self.max_rates.front().map(|(rate, _)| *rate)
    }

    fn gain(&self) -> u64 {
        match self.phase {
            Phase::Startup => STARTUP_GAIN,
            Phase::Drain => DRAIN_GAIN,
            Phase::ProbeBandwidth { step, .. } => CYCLE.get(step).copied().unwrap_or(100),
        }
    }

    /// Returns the congestion window in bytes, for packets of this size.
    pub(crate) fn congestion_window(&self, min_rtt: Duration, packet_bytes: usize) -> u64 {
        let least = WINDOW_PACKETS_MIN * packet_bytes as u64;
        let Some(rate) = self.bandwidth() else {
            return least;
        };
        let gain = if self.phase == Phase::Startup { STARTUP_GAIN } else { 200 };
        let path = bytes_in(rate, min_rtt).saturating_mul(gain) / 100;
        path.saturating_add(bytes_in(rate, ACK_AGGREGATION)).max(least)
    }

    /// Returns the time at which pacing allows the next packet.
    pub(crate) fn next_send_at(&self) -> Time {
        self.next_send_at
    }

    /// Records a sent packet; `has_in_flight` tells whether others are in flight.
    pub(crate) fn on_packet_sent(
        &mut self,
        now: Time,
        bytes: u64,
        has_in_flight: bool,
        min_rtt: Duration,
    ) -> RateSnapshot {
        if !has_in_flight {
            self.first_at = now;
            self.delivered_at = now;
        }
        if let Some(rate) = self.bandwidth() {
            let mut paced = rate.saturating_mul(self.gain()) / 100;
            if self.phase == Phase::Startup {
                // Short messages give low rate samples: the initial window is always sent within one round
                // trip.
                let window = WINDOW_PACKETS_MIN * PACKET_BYTES_BASE as u64;
                let nanos = u64::try_from(min_rtt.as_nanos()).unwrap_or(u64::MAX);
                paced = paced.max(scaled(window, 1_000_000_000, nanos));
            }
            let span = scaled(bytes, 1_000_000_000, paced);
            let caught_up = Time(now.0.saturating_sub(BURST_MAX.as_nanos() as u64));
            let span = Duration::from_nanos(span);
            self.next_send_at = self.next_send_at.max(caught_up) + span;
        }
        RateSnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_at: self.first_at,
            is_app_limited: self.app_limited_until.is_some(),
        }
    }

    /// Records that there was nothing to send although the window was open.
    pub(crate) fn on_app_limited(&mut self, bytes_in_flight: u64) {
        self.app_limited_until = Some((self.delivered + bytes_in_flight).max(1));
    }

    /// Processes acknowledged and lost bytes; `newest` is the newest acknowledged packet.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        arrived_bytes: u64,
        lost_bytes: u64,
        newest: Option<(Time, RateSnapshot)>,
        bytes_in_flight: u64,
        min_rtt: Duration,
    ) {
        self.round_lost += lost_bytes;
        let Some((sent_at, snapshot)) = newest else {
            return;
        };
        self.delivered += arrived_bytes;
        self.round_arrived += arrived_bytes;
        self.delivered_at = now;
        self.first_at = self.first_at.max(sent_at);
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let is_round = snapshot.delivered >= self.round_end;
        if is_round {
            self.round += 1;
            self.round_end = self.delivered;
        }
        self.sample(now, sent_at, snapshot, min_rtt);
        if is_round {
            self.end_round(snapshot.is_app_limited);
        }
        self.advance(now, bytes_in_flight, min_rtt);
    }

    fn sample(&mut self, now: Time, sent_at: Time, snapshot: RateSnapshot, min_rtt: Duration) {
        let span = now.since(snapshot.delivered_at).max(sent_at.since(snapshot.first_at));
        if span.is_zero() || span < min_rtt {
            return;
        }
        let bytes = self.delivered - snapshot.delivered.min(self.delivered);
        let rate = scaled(bytes, 1_000_000_000, u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        if snapshot.is_app_limited && self.bandwidth().is_some_and(|best| rate < best) {
            return;
        }
        while self.max_rates.back().is_some_and(|(other, _)| *other <= rate) {
            self.max_rates.pop_back();
        }
        self.max_rates.push_back((rate, self.round));
        while self.max_rates.len() > 1
            && self.max_rates.front().is_some_and(|(_, round)| round + MEMORY_ROUNDS < self.round)
        {
            self.max_rates.pop_front();
        }
    }

    fn end_round(&mut self, is_app_limited: bool) {
        let is_lossy = self.round_lost * 8 > self.round_arrived + self.round_lost;
        self.round_lost = 0;
        self.round_arrived = 0;
        if self.phase != Phase::Startup {
            return;
        }
        let rate = self.bandwidth().unwrap_or(0);
        if rate >= self.flat_rate + self.flat_rate / 4 && !is_lossy {
            self.flat_rate = rate;
            self.flat_rounds = 0;
        } else if !is_app_limited {
            self.flat_rounds += 1;
        }
        if self.flat_rounds >= FLAT_ROUNDS {
            self.phase = Phase::Drain;
        }
    }

    fn advance(&mut self, now: Time, bytes_in_flight: u64, min_rtt: Duration) {
        match self.phase {
            Phase::Startup => {}
            Phase::Drain => {
                if bytes_in_flight <= bytes_in(self.bandwidth().unwrap_or(0), min_rtt + ACK_AGGREGATION) {
                    self.phase = Phase::ProbeBandwidth { step: 2, since: now };
                }
            }
            Phase::ProbeBandwidth { step, since } => {
                if now.since(since) >= min_rtt.max(STEP_MIN) {
                    self.phase = Phase::ProbeBandwidth { step: (step + 1) % CYCLE.len(), since: now };
                }
            }
        }
    }
}

/// Returns the bytes that `rate` delivers in `span`.
fn bytes_in(rate: u64, span: Duration) -> u64 {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    scaled(rate, nanos, 1_000_000_000)
}

/// Returns `a * b / c`. The 64-bit path is ten times faster; this runs for each packet.
fn scaled(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c.max(1),
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c.max(1))).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests;
