//! How many packets a second a host is sent: as told, or found and held.
//!
//! The packets of a block store are always under way, so a rate that is a little too high is not corrected by the next
//! pause: it fills a queue, then the queue drops, and what it drops is data. So the rate is found *before* data needs it,
//! with packets that carry nothing (ballast), and blocks are admitted only to what was found.
//!
//! ```text
//!       once what was sent so is answered,
//!            without delay                 queue or loss
//! Finding ─── ×2 or ×1.25 ─────> Finding ───────────────> Easing ──┬─ it helped ──> Holding (climbs to 95 % of what
//!                                          queue or loss     ^     │                was answered; looks beyond after
//!                                  Holding ──────────────────┘     │                30 s, then ever more rarely)
//!                                     ^                            └─ it did not: the loss or delay is the way's own,
//!                                     └─────────────────────────────  and is not ours to avoid
//! ```
//!
//! A delay that has passed while as much was under way as before was no queue of ours: the decrease is taken back at once, on the
//! word of what was sent before it (`replies`).
//!
//! The rate doubles while the host has no blocks, which an excess could cost; with blocks it grows by a quarter at most, and by
//! less the more of them there are, so that a queue shows well before it is full. Only what an epoch has proved is admitted, never what is being tried.
//!
//! *Delay* is the signal of hosts and links that queue, and comes before any loss. *Loss* is the signal of those that
//! count (rate limits of ICMP). Loss that stays when the rate falls is the wire's: it costs redundancy, not rate.
//!
//! # Source
//! Additive increase and multiplicative decrease after Chiu and Jain (1989); the rate that is gone back to is what was
//! *answered*, as in BBR (Cardwell et al., 2016). That a decrease is tried and undone where it changes nothing is ours.

mod replies;

use std::time::Duration;

use wirefs_op::Time;

use crate::epoch::Epoch;

/// Part of the answered rate that is gone back to at least, when a queue is deep.
const CUT_DEEPEST: f64 = 0.5;
/// Part of the answered rate that is gone back to at most.
const CUT_LEAST: f64 = 0.85;
/// Laps in which a queue should be gone.
const DRAIN_LAPS: f64 = 4.0;
/// Epochs after which it is judged whether a decrease helped.
const EASING_EPOCHS: u32 = 6;
/// What a delay or loss falls to if the decrease helped, as part of what it was.
const HELPED: f64 = 0.75;
/// Part of the rate that was answered before which the increase ends.
const CLIMB_END: f64 = 0.95;
/// Part of the way to that end that is taken in one epoch.
const CLIMB_STEP: f64 = 0.125;
/// Growth while finding, without blocks at the host.
const FIND_FAST: f64 = 2.0;
/// Growth while finding, with blocks at the host, at most.
const FIND_WITH_BLOCKS: f64 = 0.25;
/// The same at least.
const FIND_WITH_BLOCKS_LEAST: f64 = 0.05;
/// Packets that one step of growth may send too many until that is noticed, a lap later: about half of a small queue.
const EXCESS_PACKETS: f64 = 24.0;
/// Rates that differ by less than this part are the same: two alarms there are no accident.
const SAME_RATE: f64 = 0.3;
/// The rate to begin with at most, in packets a second: of a near host, a few packets a lap are many a second.
const BEGIN_MAX: f64 = 200.0;
/// Growth when looking beyond what was once too much, at most.
const BEYOND: f64 = 0.05;
/// The same at least.
const BEYOND_LEAST: f64 = 0.01;
/// Part of what was proved that is relied on; the rest is for what varies.
const RELIABLE: f64 = 0.8;
/// Part of what was sent that comes back where nothing on the way is too narrow for it; the rest is for what varies.
const PASSED: f64 = 0.9;
/// Part of the rate that must be used for an epoch to prove something about it.
const LOADED: f64 = 0.75;
/// Loss above the way's own that counts as a signal.
const LOSS_STEP: f64 = 0.05;
/// Packets that must be missing for a loss to count as a signal.
const MISSING_MIN: u64 = 4;
/// The wait before looking beyond, at first.
const BEYOND_WAIT_MIN: Duration = Duration::from_secs(30);
/// The wait before looking beyond, at last.
const BEYOND_WAIT_MAX: Duration = Duration::from_secs(600);
/// Part of what was proved that causes no queue.
const LIGHT: f64 = 0.5;
/// Epochs one after the other whose delay is not taken for a queue of ours, because little was sent.
const FOREIGN_DELAYS_MAX: u32 = 8;
/// The slowest rate, in packets a second.
const RATE_MIN: f64 = 1.0;
/// A delay that counts as a queue, on the shortest way.
const QUEUE_MIN: Duration = Duration::from_millis(3);
/// The same on the longest: a queue has as much room there as anywhere, and is heard of later.
const QUEUE_MAX: Duration = Duration::from_millis(8);

/// What the user says about the rate, for each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// So many packets a second.
    Fixed(u32),
    /// As many as the host answers without delay and loss, and never more than this many packets a second.
    Adaptive {
        /// The most.
        most: u32,
    },
}

/// What was seen when the rate was decreased.
#[derive(Clone, Copy, Debug)]
struct Before {
    rate: f64,
    answered: f64,
    loss: f64,
    delay: Duration,
    is_queued: bool,
    /// The way is too narrow for the rate, as far as the replies tell: they came more slowly than was sent, or not at all.
    is_narrow: bool,
    /// The rate was being found.
    was_finding: bool,
}

/// What a delay ended, until it is known whether that was a queue.
#[derive(Clone, Copy, Debug)]
struct Suspended {
    rate: f64,
    stage: Stage,
    is_beyond: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Finding,
    Holding,
    Easing { epochs: u32, before: Before },
}

/// Whether what was learned about the way still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It does.
    Same,
    /// The way has become longer by itself: the shortest time is to be measured anew.
    LongerWay,
}

/// The rate of one host.
#[derive(Debug)]
pub(crate) struct Governor {
    rule: Rate,
    current: f64,
    /// What was answered well, of what was sent.
    proved: f64,
    stage: Stage,
    /// Loss that does not depend on the rate.
    own_loss: f64,
    /// What was answered when the rate was too high.
    answered_at_most: Option<f64>,
    beyond_at: Time,
    beyond_wait: Duration,
    /// When the rate was last changed: what was sent before says nothing about it.
    changed: Time,
    /// Replies one after the other that came behind a queue, and since when.
    queued_replies: u32,
    queued_since: Time,
    /// The same of those behind none, after a decrease.
    calm_replies: u32,
    calm_since: Time,
    /// What was before the present decrease, where a delay was its reason.
    suspended: Option<Suspended>,
    /// It is being tried whether more is answered than what was once too much.
    is_beyond: bool,
    /// By what part the rate grew last.
    step: f64,
    /// The rate at which a delay came and went by itself.
    alarm: Option<f64>,
    /// When the rate was last decreased, by the clock of the replies.
    eased: Time,
    /// Epochs one after the other with a delay that what was sent in them hardly caused.
    foreign_delays: u32,
}

impl Governor {
    /// Makes one that knows nothing of its host.
    pub(crate) fn new(rule: Rate) -> Governor {
        let current = match rule {
            Rate::Fixed(rate) => f64::from(rate),
            Rate::Adaptive { most } => f64::from(most).min(RATE_MIN * 10.0),
        };
        Governor {
            rule,
            current: current.max(RATE_MIN),
            proved: 0.0,
            stage: Stage::Finding,
            own_loss: 0.0,
            answered_at_most: None,
            beyond_at: Time::default(),
            beyond_wait: BEYOND_WAIT_MIN,
            changed: Time::default(),
            queued_replies: 0,
            queued_since: Time::default(),
            calm_replies: 0,
            calm_since: Time::default(),
            suspended: None,
            is_beyond: false,
            step: 0.0,
            alarm: None,
            eased: Time::default(),
            foreign_delays: 0,
        }
    }

    /// The rate now, in packets a second.
    pub(crate) fn rate(&self) -> f64 {
        self.current
    }

    /// What may be relied on, in packets a second: as the user said, or as was proved and is not above what is sent now.
    pub(crate) fn reliable(&self) -> f64 {
        match self.rule {
            Rate::Fixed(_) => self.current,
            Rate::Adaptive { .. } => self.proved.min(self.current) * RELIABLE,
        }
    }

    /// Whether the host was never sent too much.
    pub(crate) fn is_finding(&self) -> bool {
        matches!((self.stage, self.rule), (Stage::Finding, Rate::Adaptive { .. }))
    }

    /// Whether more packets would let the rate grow.
    pub(crate) fn may_grow(&self, now: Time) -> bool {
        let Rate::Adaptive { most } = self.rule else {
            return false;
        };
        let is_below = self.current < f64::from(most);
        match self.stage {
            Stage::Finding => is_below,
            Stage::Holding => is_below && (self.current < self.climb_end() || now >= self.beyond_at),
            Stage::Easing { .. } => false,
        }
    }

    /// Begins with so many packets a lap, now that the lap is known.
    pub(crate) fn begin(&mut self, packets: u64, lap: Duration) {
        if let (Rate::Adaptive { most }, Stage::Finding) = (self.rule, self.stage) {
            let rate = packets as f64 / lap.as_secs_f64().max(1e-6);
            self.current = rate.min(BEGIN_MAX).clamp(RATE_MIN, f64::from(most).max(RATE_MIN));
        }
    }

    /// Judges an epoch, given the shortest time that the way takes, and how many packets of blocks the host has.
    pub(crate) fn judge(&mut self, now: Time, epoch: &Epoch, shortest: Duration, blocks: u64) -> Judgement {
        let Rate::Adaptive { most } = self.rule else {
            return Judgement::Same;
        };
        let most = f64::from(most).max(RATE_MIN);
        let delay = epoch.way().saturating_sub(shortest);
        let is_queued = is_queue(delay, shortest) && !self.is_foreign(epoch);
        if !is_queue(delay, shortest) {
            self.foreign_delays = 0;
        }
        let loss = epoch.loss();
        let is_lossy = epoch.missing() >= MISSING_MIN && loss > self.own_loss + LOSS_STEP;
        if let Stage::Easing { epochs, before } = self.stage {
            if epochs > 0 {
                self.stage = Stage::Easing { epochs: epochs - 1, before };
                return Judgement::Same;
            }
            return self.settle(now, before, loss, delay);
        }
        if is_queued || is_lossy {
            // Where little was sent, what came back says nothing about what would.
            let is_loaded = epoch.sent_rate() >= LOADED * self.current;
            let answered = if is_loaded { epoch.answered_rate() } else { self.current };
            let passed = if self.is_finding() { self.passed() } else { PASSED };
            let before = Before {
                rate: self.current,
                answered,
                loss,
                delay,
                is_queued,
                is_narrow: is_lossy || answered < passed * self.current,
                was_finding: self.is_finding(),
            };
            self.ease(now, before, shortest);
        } else if epoch.sent_rate() >= LOADED * self.current && epoch.begun() >= self.changed {
            self.proved = epoch.sent_rate().min(self.current);
            let packets_a_lap = blocks as f64 + self.current * shortest.as_secs_f64();
            self.grow(now, most, blocks > 0, packets_a_lap);
        }
        // What the wire loses by itself may become less.
        self.own_loss = self.own_loss.min(self.own_loss * 0.9 + loss * 0.1);
        Judgement::Same
    }

    /// Whether a delay has another cause than what was sent: more was sent once, and not delayed. Believed for some
    /// epochs; then the host has become slower.
    fn is_foreign(&mut self, epoch: &Epoch) -> bool {
        let is_light = epoch.sent_rate() < LIGHT * self.proved;
        self.foreign_delays = if is_light { self.foreign_delays + 1 } else { 0 };
        is_light && self.foreign_delays <= FOREIGN_DELAYS_MAX
    }

    /// Decreases the rate. Replies that were counted until now are those to what was sent before.
    fn ease(&mut self, now: Time, before: Before, shortest: Duration) {
        (self.eased, self.queued_replies, self.calm_replies) = (now, 0, 0);
        let present = Suspended { rate: self.current, stage: self.stage, is_beyond: self.is_beyond };
        // What was before the first of several decreases counts.
        self.suspended = before.is_queued.then_some(self.suspended.unwrap_or(present));
        let queue_laps = before.delay.as_secs_f64() / shortest.as_secs_f64().max(1e-6);
        let cut = if before.is_queued { 1.0 - queue_laps / DRAIN_LAPS } else { CUT_LEAST };
        let before = match self.stage {
            Stage::Finding | Stage::Holding => before,
            Stage::Easing { before: first, .. } => {
                Before { answered: first.answered.min(before.answered), is_narrow: true, ..first }
            }
        };
        let answered = before.answered.min(before.rate);
        self.current = (answered * cut.clamp(CUT_DEEPEST, CUT_LEAST)).max(RATE_MIN);
        self.stage = Stage::Easing { epochs: EASING_EPOCHS, before };
    }

    /// Decides after a decrease whether it helped.
    fn settle(&mut self, now: Time, before: Before, loss: f64, delay: Duration) -> Judgement {
        (self.stage, self.suspended) = (Stage::Holding, None);
        let was_beyond = std::mem::take(&mut self.is_beyond);
        let has_helped = if before.is_queued {
            delay.as_secs_f64() < before.delay.as_secs_f64() * HELPED
        } else {
            loss < before.loss * HELPED
        };
        let is_known =
            before.was_finding && self.alarm.is_some_and(|rate| (before.rate / rate - 1.0).abs() < SAME_RATE);
        if has_helped && !before.is_narrow && !was_beyond && !is_known {
            // The delay went by itself: all that was sent came back in time. Nothing is learned about what would be too much,
            // unless it happens there once more.
            self.alarm = Some(before.rate);
            if before.was_finding {
                self.stage = Stage::Finding;
            }
            self.current = self.current.max(before.rate * CUT_LEAST);
            return Judgement::Same;
        }
        if has_helped {
            self.answered_at_most = Some(before.answered.min(before.rate));
            self.proved = self.proved.min(before.answered);
            self.beyond_wait =
                if was_beyond { (self.beyond_wait * 2).min(BEYOND_WAIT_MAX) } else { BEYOND_WAIT_MIN };
            self.beyond_at = now + self.beyond_wait;
            return Judgement::Same;
        }
        self.current = before.rate;
        if before.is_queued {
            return Judgement::LongerWay;
        }
        self.own_loss = loss;
        Judgement::Same
    }

    /// Part of what was sent that comes back where the way is wide enough: the less it grew, the more.
    fn passed(&self) -> f64 {
        PASSED.max(1.0 / (1.0 + self.step / 2.0))
    }

    /// Sends more, by so little, where there are blocks, that what is too much finds room in a queue until it is noticed: that
    /// takes a lap, in which all packets of the host come round.
    fn grow(&mut self, now: Time, most: f64, has_blocks: bool, packets_a_lap: f64) {
        let step = EXCESS_PACKETS / packets_a_lap.max(1.0);
        let grown = match self.stage {
            Stage::Finding if has_blocks => {
                self.step = step.clamp(FIND_WITH_BLOCKS_LEAST, FIND_WITH_BLOCKS);
                self.current * (1.0 + self.step)
            }
            Stage::Finding => {
                self.step = FIND_FAST - 1.0;
                self.current * FIND_FAST
            }
            Stage::Holding if self.current < self.climb_end() => {
                let end = self.climb_end().min(most);
                // At least a packet a second, so that slow rates get there too.
                (self.current + ((end - self.current) * CLIMB_STEP).max(1.0)).min(end)
            }
            Stage::Holding if now >= self.beyond_at => {
                self.step = (step / 2.0).clamp(BEYOND_LEAST, BEYOND);
                let beyond = self.current * (1.0 + self.step);
                self.answered_at_most = Some(beyond / CLIMB_END);
                self.is_beyond = true;
                beyond
            }
            Stage::Holding | Stage::Easing { .. } => self.current,
        };
        let grown = grown.min(most);
        if grown != self.current {
            (self.current, self.changed) = (grown, now);
        }
    }

    fn climb_end(&self) -> f64 {
        self.answered_at_most.map_or(f64::INFINITY, |answered| answered * CLIMB_END)
    }
}

/// Whether such a delay is that of a queue.
fn is_queue(delay: Duration, shortest: Duration) -> bool {
    delay > (shortest / 4).clamp(QUEUE_MIN, QUEUE_MAX)
}

#[cfg(test)]
mod tests;
