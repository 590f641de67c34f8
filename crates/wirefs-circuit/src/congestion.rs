//! How fast a path is, how much may be under way on it, and when the next packet may leave.
//!
//! The rate is measured as what arrives, not guessed from what is lost: a cable that loses one packet in a hundred is
//! not slower for that.
//!
//! # Source
//! Cardwell and others, "BBR: congestion-based congestion control", ACM Queue 14 (2016): the largest rate of delivery of
//! late, times the shortest round trip; start, drain, and then a cycle of gains. Cheng and others, "Delivery rate
//! estimation" (IETF draft): how a sample is taken.

use std::collections::VecDeque;
use std::time::Duration;

use wirefs_op::Time;

use crate::limits::{BURST_MAX, PACKET_BYTES_PLAIN, WINDOW_PACKETS_MIN};

/// Rounds for which the largest rate is remembered.
const MEMORY_ROUNDS: u64 = 10;
/// In percent: doubles the rate in each round trip.
const START_GAIN: u64 = 277;
/// In percent: takes back what the start queued up.
const DRAIN_GAIN: u64 = 36;
/// In percent, each for one round trip: look for more, take back what that queued up, cruise.
const CYCLE: [u64; 8] = [125, 75, 100, 100, 100, 100, 100, 100];
/// The shortest step of the cycle.
const STEP_MIN: Duration = Duration::from_millis(1);
/// Rounds without growth after which the start is over.
const FLAT_ROUNDS: u32 = 3;
/// Acknowledgements come in lumps, since hosts sleep: so much more than the path holds may be under way.
const LUMP: Duration = Duration::from_millis(2);

/// What the rate was when a packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    delivered: u64,
    delivered_at: Time,
    first_at: Time,
    is_idle: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Start,
    Drain,
    Cruise { step: usize, since: Time },
}

#[derive(Debug)]
pub(crate) struct Rate {
    phase: Phase,
    /// The largest rates of late, in bytes a second, with their rounds; falling.
    best: VecDeque<(u64, u64)>,
    round: u64,
    round_end: u64,
    flat_rate: u64,
    flat_rounds: u32,
    delivered: u64,
    delivered_at: Time,
    first_at: Time,
    /// Until so much is delivered, samples say what the user sent and not what the path carries.
    idle_until: Option<u64>,
    round_lost: u64,
    round_arrived: u64,
    next: Time,
}

impl Rate {
    pub(crate) fn new() -> Rate {
        Rate {
            phase: Phase::Start,
            best: VecDeque::new(),
            round: 0,
            round_end: 0,
            flat_rate: 0,
            flat_rounds: 0,
            delivered: 0,
            delivered_at: Time::default(),
            first_at: Time::default(),
            idle_until: None,
            round_lost: 0,
            round_arrived: 0,
            next: Time::default(),
        }
    }

    /// The measured rate in bytes a second; none before anything was measured.
    pub(crate) fn measured(&self) -> Option<u64> {
        self.best.front().map(|(rate, _)| *rate)
    }

    fn gain(&self) -> u64 {
        match self.phase {
            Phase::Start => START_GAIN,
            Phase::Drain => DRAIN_GAIN,
            Phase::Cruise { step, .. } => CYCLE.get(step).copied().unwrap_or(100),
        }
    }

    /// Bytes that may be under way, in packets of this size.
    pub(crate) fn window(&self, shortest: Duration, packet_bytes: usize) -> u64 {
        let least = WINDOW_PACKETS_MIN * packet_bytes as u64;
        let Some(rate) = self.measured() else {
            return least;
        };
        let gain = if self.phase == Phase::Start { START_GAIN } else { 200 };
        let path = bytes_in(rate, shortest).saturating_mul(gain) / 100;
        path.saturating_add(bytes_in(rate, LUMP)).max(least)
    }

    /// When the next packet may leave.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Notes that a packet leaves; `is_flying` says whether others are under way.
    pub(crate) fn leave(&mut self, now: Time, bytes: u64, is_flying: bool, shortest: Duration) -> Mark {
        if !is_flying {
            self.first_at = now;
            self.delivered_at = now;
        }
        if let Some(rate) = self.measured() {
            let mut paced = rate.saturating_mul(self.gain()) / 100;
            if self.phase == Phase::Start {
                // Short messages say little about the path: the first window leaves within one round trip.
                let window = WINDOW_PACKETS_MIN * PACKET_BYTES_PLAIN as u64;
                let nanos = u64::try_from(shortest.as_nanos()).unwrap_or(u64::MAX);
                paced = paced.max(scaled(window, 1_000_000_000, nanos));
            }
            let span = scaled(bytes, 1_000_000_000, paced);
            let caught_up = Time(now.0.saturating_sub(BURST_MAX.as_nanos() as u64));
            let span = Duration::from_nanos(span);
            self.next = self.next.max(caught_up) + span;
        }
        Mark {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_at: self.first_at,
            is_idle: self.idle_until.is_some(),
        }
    }

    /// Notes that there was nothing to send though the path had room.
    pub(crate) fn idle(&mut self, flying_bytes: u64) {
        self.idle_until = Some((self.delivered + flying_bytes).max(1));
    }

    /// Notes what was acknowledged and lost; `newest` is the newest packet that arrived.
    pub(crate) fn learn(
        &mut self,
        now: Time,
        arrived_bytes: u64,
        lost_bytes: u64,
        newest: Option<(Time, Mark)>,
        flying_bytes: u64,
        shortest: Duration,
    ) {
        self.round_lost += lost_bytes;
        let Some((sent_at, mark)) = newest else {
            return;
        };
        self.delivered += arrived_bytes;
        self.round_arrived += arrived_bytes;
        self.delivered_at = now;
        self.first_at = self.first_at.max(sent_at);
        if self.idle_until.is_some_and(|until| self.delivered > until) {
            self.idle_until = None;
        }
        let is_round = mark.delivered >= self.round_end;
        if is_round {
            self.round += 1;
            self.round_end = self.delivered;
        }
        self.sample(now, sent_at, mark, shortest);
        if is_round {
            self.end_round(mark.is_idle);
        }
        self.advance(now, flying_bytes, shortest);
    }

    fn sample(&mut self, now: Time, sent_at: Time, mark: Mark, shortest: Duration) {
        let span = now.since(mark.delivered_at).max(sent_at.since(mark.first_at));
        if span.is_zero() || span < shortest {
            return;
        }
        let bytes = self.delivered - mark.delivered.min(self.delivered);
        let rate = scaled(bytes, 1_000_000_000, u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        if mark.is_idle && self.measured().is_some_and(|best| rate < best) {
            return;
        }
        while self.best.back().is_some_and(|(other, _)| *other <= rate) {
            self.best.pop_back();
        }
        self.best.push_back((rate, self.round));
        while self.best.len() > 1
            && self.best.front().is_some_and(|(_, round)| round + MEMORY_ROUNDS < self.round)
        {
            self.best.pop_front();
        }
    }

    fn end_round(&mut self, is_idle: bool) {
        let is_lossy = self.round_lost * 8 > self.round_arrived + self.round_lost;
        self.round_lost = 0;
        self.round_arrived = 0;
        if self.phase != Phase::Start {
            return;
        }
        let rate = self.measured().unwrap_or(0);
        if rate >= self.flat_rate + self.flat_rate / 4 && !is_lossy {
            self.flat_rate = rate;
            self.flat_rounds = 0;
        } else if !is_idle {
            self.flat_rounds += 1;
        }
        if self.flat_rounds >= FLAT_ROUNDS {
            self.phase = Phase::Drain;
        }
    }

    fn advance(&mut self, now: Time, flying_bytes: u64, shortest: Duration) {
        match self.phase {
            Phase::Start => {}
            Phase::Drain => {
                if flying_bytes <= bytes_in(self.measured().unwrap_or(0), shortest + LUMP) {
                    self.phase = Phase::Cruise { step: 2, since: now };
                }
            }
            Phase::Cruise { step, since } => {
                if now.since(since) >= shortest.max(STEP_MIN) {
                    self.phase = Phase::Cruise { step: (step + 1) % CYCLE.len(), since: now };
                }
            }
        }
    }
}

/// Bytes that a rate carries in this time.
fn bytes_in(rate: u64, span: Duration) -> u64 {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    scaled(rate, nanos, 1_000_000_000)
}

/// `a * b / c`. Nearly always the product has room in 64 bits, whose division costs a tenth; this is asked for each packet.
fn scaled(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c.max(1),
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c.max(1))).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests;
