//! Rate control per host: a fixed rate, or an adaptive one.
//!
//! The packets of a block store are always in flight. A rate that is slightly too high is not corrected by
//! the next pause: it fills a queue, the queue drops packets, and these hold data. So the rate is measured
//! *before* data needs it, with padding probes, and blocks are admitted only up to the measured rate.
//!
//! ```text
//!        after packets sent at the new rate
//!        are answered without delay      queue or loss
//!  Startup ── ×2 or ×1.25 ─────> Startup ─────────────> Backoff ──┬─ improved ──> Steady (climbs to 95 % of the
//!                                         queue or loss     ^     │               answered rate; probes above it
//!                                  Steady ──────────────────┘     │               after 30 s, then less often)
//!                                     ^                           └─ not improved: loss or delay of the path itself,
//!                                     └────────────────────────────  which the rate does not change
//! ```
//!
//! A delay that passes while as many packets are in flight as before was not caused by our queue. The backoff
//! is then undone at once, on the evidence of packets sent before it (`replies`).
//!
//! The rate doubles while the host has no blocks that an excess could lose. With blocks it grows by a quarter
//! at most, and by less the more blocks there are, so a queue shows well before it is full. Blocks are
//! admitted only up to the rate that an interval has proved, never up to a rate that is being probed.
//!
//! *Delay* is the signal of hosts and links that queue, and precedes loss. *Loss* is the signal of ICMP rate
//! limits. Loss that stays when the rate falls belongs to the link: it needs redundancy, not a lower rate.
//!
//! # Source
//! Additive increase and multiplicative decrease after Chiu and Jain (1989); the backoff to the *delivered*
//! rate after BBR (Cardwell et al., 2016). Undoing a backoff without effect is ours.

mod replies;

use std::time::Duration;

use wirefs_op::Time;

use crate::monitor_interval::MonitorInterval;

/// The smallest backoff factor of the answered rate, for a deep queue.
const BACKOFF_FACTOR_MIN: f64 = 0.5;
/// The largest backoff factor of the answered rate.
const BACKOFF_FACTOR_MAX: f64 = 0.85;
/// RTTs in which a queue should drain.
const DRAIN_RTTS: f64 = 4.0;
/// Monitor intervals after which a backoff is evaluated.
const BACKOFF_INTERVALS: u32 = 6;
/// A delay or loss below this ratio of the old value counts as improved.
const IMPROVED_RATIO: f64 = 0.75;
/// The part of the answered rate at which the increase ends.
const CLIMB_END: f64 = 0.95;
/// The part of the distance to that end which one interval covers.
const CLIMB_STEP: f64 = 0.125;
/// Growth during startup without blocks at the host.
const STARTUP_GAIN: f64 = 2.0;
/// The largest growth during startup with blocks at the host.
const LOADED_STARTUP_GAIN_MAX: f64 = 0.25;
/// The smallest growth during startup with blocks at the host.
const LOADED_STARTUP_GAIN_MIN: f64 = 0.05;
/// Packets that one growth step may send in excess before it is detected, a cycle later: about half of a
/// small queue.
const EXCESS_PACKETS: f64 = 24.0;
/// Rates that differ by less than this ratio are equal: two delays at the same rate are no coincidence.
const SAME_RATE_RATIO: f64 = 0.3;
/// The largest initial rate in packets per second: for a near host, a few packets per RTT are many per
/// second.
const INITIAL_RATE_MAX: f64 = 200.0;
/// The largest growth when probing above a rate that was once too high.
const PROBE_GAIN_MAX: f64 = 0.05;
/// The smallest growth when probing above that rate.
const PROBE_GAIN_MIN: f64 = 0.01;
/// The part of the proved rate up to which blocks are admitted; the rest is a margin for variation.
const RELIABLE_RATIO: f64 = 0.8;
/// The part of the sent packets that come back on a path without a bottleneck; the rest is a margin for
/// variation.
const DELIVERED_RATIO: f64 = 0.9;
/// The part of the rate that must be used for an interval to prove it.
const LOADED_RATIO: f64 = 0.75;
/// Loss above the base loss that counts as a signal.
const LOSS_STEP: f64 = 0.05;
/// Packets that must be missing for a loss to count as a signal.
const MISSING_MIN: u64 = 4;
/// The first wait before probing above a rate that was too high.
const PROBE_WAIT_MIN: Duration = Duration::from_secs(30);
/// The longest wait before probing above that rate.
const PROBE_WAIT_MAX: Duration = Duration::from_secs(600);
/// The part of the proved rate that cannot cause a queue.
const LIGHT_RATIO: f64 = 0.5;
/// Consecutive intervals in which a delay at a light load is not attributed to our queue.
const UNRELATED_DELAYS_MAX: u32 = 8;
/// The lowest rate in packets per second.
const RATE_MIN: f64 = 1.0;
/// The smallest delay that counts as a queue, on the shortest path.
const QUEUE_MIN: Duration = Duration::from_millis(3);
/// The smallest delay that counts as a queue, on the longest path: a queue is as large there and is detected
/// later.
const QUEUE_MAX: Duration = Duration::from_millis(8);

/// The send rate of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendRate {
    /// A fixed rate in packets per second.
    Fixed(u32),
    /// The highest rate that the host answers without delay and loss.
    Adaptive {
        /// The upper limit in packets per second.
        max: u32,
    },
}

/// Measurements at the time of a backoff.
#[derive(Clone, Copy, Debug)]
struct Observation {
    rate: f64,
    answered: f64,
    loss: f64,
    delay: Duration,
    is_queued: bool,
    /// The path cannot carry the rate: replies came more slowly than requests were sent, or not at all.
    is_narrow: bool,
    /// The controller was in startup.
    was_startup: bool,
}

/// The state before a backoff that a delay caused, until the delay is known to be a queue.
#[derive(Clone, Copy, Debug)]
struct SavedRate {
    rate: f64,
    stage: Stage,
    is_probing: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Startup,
    Steady,
    Backoff { intervals_left: u32, before: Observation },
}

/// Whether the minimum RTT still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathChange {
    /// The minimum RTT holds.
    Unchanged,
    /// The path became longer without our queue: measure the minimum RTT again.
    Longer,
}

/// The rate controller of one host.
#[derive(Debug)]
pub(crate) struct RateController {
    rule: SendRate,
    current: f64,
    /// The highest rate that was answered without delay and loss.
    proved: f64,
    stage: Stage,
    /// Loss that does not depend on the rate.
    base_loss: f64,
    /// The answered rate when the send rate was too high.
    answered_max: Option<f64>,
    probe_at: Time,
    probe_wait: Duration,
    /// When the rate last changed. Packets sent before say nothing about it.
    changed: Time,
    /// Consecutive replies behind a queue, and when they began.
    queued_replies: u32,
    queued_since: Time,
    /// Consecutive replies without a queue after a backoff, and when they began.
    calm_replies: u32,
    calm_since: Time,
    /// The state before the current backoff, if a delay caused it.
    saved: Option<SavedRate>,
    /// The rate is above one that was once too high.
    is_probing: bool,
    /// The last relative growth.
    step: f64,
    /// The rate at which a delay came and passed by itself.
    transient_rate: Option<f64>,
    /// When the rate was last reduced, by the arrival time of the replies.
    backed_off_at: Time,
    /// Consecutive intervals with a delay at a light load.
    unrelated_delays: u32,
}

impl RateController {
    /// Creates a controller without measurements.
    pub(crate) fn new(rule: SendRate) -> RateController {
        let current = match rule {
            SendRate::Fixed(rate) => f64::from(rate),
            SendRate::Adaptive { max } => f64::from(max).min(RATE_MIN * 10.0),
        };
        RateController {
            rule,
            current: current.max(RATE_MIN),
            proved: 0.0,
            stage: Stage::Startup,
            base_loss: 0.0,
            answered_max: None,
            probe_at: Time::default(),
            probe_wait: PROBE_WAIT_MIN,
            changed: Time::default(),
            queued_replies: 0,
            queued_since: Time::default(),
            calm_replies: 0,
            calm_since: Time::default(),
            saved: None,
            is_probing: false,
            step: 0.0,
            transient_rate: None,
            backed_off_at: Time::default(),
            unrelated_delays: 0,
        }
    }

    /// Returns the current rate in packets per second.
    pub(crate) fn rate(&self) -> f64 {
        self.current
    }

    /// Returns the rate for admission in packets per second: the fixed rate, or the proved rate capped by the
    /// current one.
    pub(crate) fn reliable(&self) -> f64 {
        match self.rule {
            SendRate::Fixed(_) => self.current,
            SendRate::Adaptive { .. } => self.proved.min(self.current) * RELIABLE_RATIO,
        }
    }

    /// Returns whether the rate was never too high.
    pub(crate) fn is_startup(&self) -> bool {
        matches!((self.stage, self.rule), (Stage::Startup, SendRate::Adaptive { .. }))
    }

    /// Returns whether more packets would let the rate grow.
    pub(crate) fn may_grow(&self, now: Time) -> bool {
        let SendRate::Adaptive { max } = self.rule else {
            return false;
        };
        let is_below = self.current < f64::from(max);
        match self.stage {
            Stage::Startup => is_below,
            Stage::Steady => is_below && (self.current < self.climb_end() || now >= self.probe_at),
            Stage::Backoff { .. } => false,
        }
    }

    /// Sets the initial rate to `packets` per RTT, once the RTT is known.
    pub(crate) fn set_initial_rate(&mut self, packets: u64, rtt: Duration) {
        if let (SendRate::Adaptive { max }, Stage::Startup) = (self.rule, self.stage) {
            let rate = packets as f64 / rtt.as_secs_f64().max(1e-6);
            self.current = rate.min(INITIAL_RATE_MAX).clamp(RATE_MIN, f64::from(max).max(RATE_MIN));
        }
    }

    /// Evaluates a monitor interval, given the minimum RTT and the number of packets of blocks at the host.
    pub(crate) fn evaluate(
        &mut self,
        now: Time,
        interval: &MonitorInterval,
        rtt_min: Duration,
        blocks: u64,
    ) -> PathChange {
        let SendRate::Adaptive { max } = self.rule else {
            return PathChange::Unchanged;
        };
        let max = f64::from(max).max(RATE_MIN);
        let delay = interval.rtt().saturating_sub(rtt_min);
        let is_queued = is_queue(delay, rtt_min) && !self.is_unrelated(interval);
        if !is_queue(delay, rtt_min) {
            self.unrelated_delays = 0;
        }
        let loss = interval.loss();
        let is_lossy = interval.missing() >= MISSING_MIN && loss > self.base_loss + LOSS_STEP;
        if let Stage::Backoff { intervals_left, before } = self.stage {
            if intervals_left > 0 {
                self.stage = Stage::Backoff { intervals_left: intervals_left - 1, before };
                return PathChange::Unchanged;
            }
            return self.end_backoff(now, before, loss, delay);
        }
        if is_queued || is_lossy {
            // At a low send rate, the answered rate says nothing about the capacity.
            let is_loaded = interval.sent_rate() >= LOADED_RATIO * self.current;
            let answered = if is_loaded { interval.answered_rate() } else { self.current };
            let passed = if self.is_startup() { self.expected_ratio() } else { DELIVERED_RATIO };
            let before = Observation {
                rate: self.current,
                answered,
                loss,
                delay,
                is_queued,
                is_narrow: is_lossy || answered < passed * self.current,
                was_startup: self.is_startup(),
            };
            self.back_off(now, before, rtt_min);
        } else if interval.sent_rate() >= LOADED_RATIO * self.current && interval.begun() >= self.changed {
            self.proved = interval.sent_rate().min(self.current);
            let packets_per_cycle = blocks as f64 + self.current * rtt_min.as_secs_f64();
            self.grow(now, max, blocks > 0, packets_per_cycle);
        }
        // The loss of the link itself may decrease.
        self.base_loss = self.base_loss.min(self.base_loss * 0.9 + loss * 0.1);
        PathChange::Unchanged
    }

    /// Returns whether a delay is unrelated to our load, because a higher rate was answered without delay.
    /// After some intervals the host itself counts as slower.
    fn is_unrelated(&mut self, interval: &MonitorInterval) -> bool {
        let is_light = interval.sent_rate() < LIGHT_RATIO * self.proved;
        self.unrelated_delays = if is_light { self.unrelated_delays + 1 } else { 0 };
        is_light && self.unrelated_delays <= UNRELATED_DELAYS_MAX
    }

    /// Reduces the rate. The replies counted so far belong to packets sent before.
    fn back_off(&mut self, now: Time, before: Observation, rtt_min: Duration) {
        (self.backed_off_at, self.queued_replies, self.calm_replies) = (now, 0, 0);
        let present = SavedRate { rate: self.current, stage: self.stage, is_probing: self.is_probing };
        // The state before the first of several backoffs counts.
        self.saved = before.is_queued.then_some(self.saved.unwrap_or(present));
        let queue_rtts = before.delay.as_secs_f64() / rtt_min.as_secs_f64().max(1e-6);
        let cut = if before.is_queued { 1.0 - queue_rtts / DRAIN_RTTS } else { BACKOFF_FACTOR_MAX };
        let before = match self.stage {
            Stage::Startup | Stage::Steady => before,
            Stage::Backoff { before: first, .. } => {
                Observation { answered: first.answered.min(before.answered), is_narrow: true, ..first }
            }
        };
        let answered = before.answered.min(before.rate);
        self.current = (answered * cut.clamp(BACKOFF_FACTOR_MIN, BACKOFF_FACTOR_MAX)).max(RATE_MIN);
        self.stage = Stage::Backoff { intervals_left: BACKOFF_INTERVALS, before };
    }

    /// Decides after a backoff whether it helped.
    fn end_backoff(&mut self, now: Time, before: Observation, loss: f64, delay: Duration) -> PathChange {
        (self.stage, self.saved) = (Stage::Steady, None);
        let was_probing = std::mem::take(&mut self.is_probing);
        let has_improved = if before.is_queued {
            delay.as_secs_f64() < before.delay.as_secs_f64() * IMPROVED_RATIO
        } else {
            loss < before.loss * IMPROVED_RATIO
        };
        let is_known = before.was_startup
            && self.transient_rate.is_some_and(|rate| (before.rate / rate - 1.0).abs() < SAME_RATE_RATIO);
        if has_improved && !before.is_narrow && !was_probing && !is_known {
            // The delay passed by itself: all packets came back in time. A limit is learned only if the delay
            // returns at this rate.
            self.transient_rate = Some(before.rate);
            if before.was_startup {
                self.stage = Stage::Startup;
            }
            self.current = self.current.max(before.rate * BACKOFF_FACTOR_MAX);
            return PathChange::Unchanged;
        }
        if has_improved {
            self.answered_max = Some(before.answered.min(before.rate));
            self.proved = self.proved.min(before.answered);
            self.probe_wait =
                if was_probing { (self.probe_wait * 2).min(PROBE_WAIT_MAX) } else { PROBE_WAIT_MIN };
            self.probe_at = now + self.probe_wait;
            return PathChange::Unchanged;
        }
        self.current = before.rate;
        if before.is_queued {
            return PathChange::Longer;
        }
        self.base_loss = loss;
        PathChange::Unchanged
    }

    /// Returns the part of the sent packets that must come back on a path that carries the rate. The smaller
    /// the last growth, the larger the part.
    fn expected_ratio(&self) -> f64 {
        DELIVERED_RATIO.max(1.0 / (1.0 + self.step / 2.0))
    }

    /// Increases the rate. With blocks at the host, the step is so small that the excess of one cycle fits in
    /// a queue.
    fn grow(&mut self, now: Time, max: f64, has_blocks: bool, packets_per_cycle: f64) {
        let step = EXCESS_PACKETS / packets_per_cycle.max(1.0);
        let grown = match self.stage {
            Stage::Startup if has_blocks => {
                self.step = step.clamp(LOADED_STARTUP_GAIN_MIN, LOADED_STARTUP_GAIN_MAX);
                self.current * (1.0 + self.step)
            }
            Stage::Startup => {
                self.step = STARTUP_GAIN - 1.0;
                self.current * STARTUP_GAIN
            }
            Stage::Steady if self.current < self.climb_end() => {
                let end = self.climb_end().min(max);
                // At least one packet per second, so that slow rates reach the end too.
                (self.current + ((end - self.current) * CLIMB_STEP).max(1.0)).min(end)
            }
            Stage::Steady if now >= self.probe_at => {
                self.step = (step / 2.0).clamp(PROBE_GAIN_MIN, PROBE_GAIN_MAX);
                let probe_rate = self.current * (1.0 + self.step);
                self.answered_max = Some(probe_rate / CLIMB_END);
                self.is_probing = true;
                probe_rate
            }
            Stage::Steady | Stage::Backoff { .. } => self.current,
        };
        let grown = grown.min(max);
        if grown != self.current {
            (self.current, self.changed) = (grown, now);
        }
    }

    fn climb_end(&self) -> f64 {
        self.answered_max.map_or(f64::INFINITY, |answered| answered * CLIMB_END)
    }
}

/// Returns whether a delay is large enough to be a queue.
fn is_queue(delay: Duration, rtt_min: Duration) -> bool {
    delay > (rtt_min / 4).clamp(QUEUE_MIN, QUEUE_MAX)
}

#[cfg(test)]
mod tests;
