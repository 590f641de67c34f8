//! Rate decisions from single replies, between the monitor intervals.

use std::time::Duration;

use wirefs_op::Time;

use super::{DELIVERED_RATIO, Observation, QUEUE_MIN, RateController, SendRate, Stage, is_queue};

/// The part of a reduced rate below which replies show that it is still too high.
const STILL_NARROW_RATIO: f64 = 0.95;
/// The part of a steady rate below which a few replies show that the path became narrower.
const NARROWER_RATIO: f64 = 0.75;
/// Consecutive replies behind a queue that end startup.
const QUEUED_REPLIES: u32 = 16;
/// Consecutive replies without a queue that show the capacity: more than a rate limiter passes at once.
const CALM_REPLIES: u32 = 32;

impl RateController {
    /// Processes the RTT of a reply. During startup a queue ends the growth at once: its packets were sent
    /// one RTT ago, and more are in flight.
    ///
    /// Replies behind a queue arrive at the rate of the bottleneck. A batch delayed by our own machine
    /// arrives late too, but as fast as it was sent, and changes nothing.
    ///
    /// A steady rate is reduced as well if the replies arrive much more slowly than requests were sent. All
    /// of this holds only while the rate is the limit (`is_rate_limited`); otherwise the replies are as slow
    /// as the requests.
    pub(crate) fn on_reply(
        &mut self,
        arrived: Time,
        rtt: Duration,
        loss: f64,
        rtt_min: Duration,
        is_rate_limited: bool,
    ) {
        let delay = rtt.saturating_sub(rtt_min);
        self.undo_backoff_if_transient(arrived, is_queue(delay, rtt_min));
        // Packets sent before a backoff say nothing about it.
        let is_old = matches!(self.stage, Stage::Backoff { .. }) && arrived - self.backed_off_at < rtt;
        if !is_queue(delay, rtt_min) || !is_rate_limited || is_old {
            self.queued_replies = 0;
            return;
        }
        if self.queued_replies == 0 {
            self.queued_since = arrived;
        }
        self.queued_replies += 1;
        let span = arrived - self.queued_since;
        let passed = match (self.stage, self.rule) {
            (_, SendRate::Fixed(_)) => return,
            // The backoff was too small.
            (Stage::Backoff { .. }, _) => STILL_NARROW_RATIO,
            (Stage::Startup, _) => self.expected_ratio(),
            (Stage::Steady, _) if self.is_probing => self.expected_ratio(),
            (Stage::Steady, _) => NARROWER_RATIO,
        };
        if self.queued_replies < QUEUED_REPLIES || span < QUEUE_MIN {
            return;
        }
        let answered = f64::from(self.queued_replies - 1) / span.as_secs_f64();
        self.queued_replies = 0;
        if answered >= passed * self.current {
            return;
        }
        let (rate, was_startup) = (self.current, self.is_startup());
        let before =
            Observation { rate, answered, loss, delay, is_queued: true, is_narrow: true, was_startup };
        self.back_off(arrived, before, rtt_min);
    }

    /// Undoes a backoff if the delay passed by itself. A queue stays as long as packets enter at the old
    /// rate. So packets sent before the backoff that arrive fast and without delay, after late ones, prove
    /// that the path carries the old rate. A pause of either end or of this machine looks like that.
    fn undo_backoff_if_transient(&mut self, arrived: Time, is_late: bool) {
        let (Some(saved), Stage::Backoff { intervals_left, before }) = (self.saved, self.stage) else {
            return;
        };
        if is_late {
            self.calm_replies = 0;
            return;
        }
        if self.calm_replies == 0 {
            self.calm_since = arrived;
        }
        self.calm_replies += 1;
        let span = arrived - self.calm_since;
        if self.calm_replies < CALM_REPLIES || span < QUEUE_MIN {
            return;
        }
        let answered = f64::from(self.calm_replies - 1) / span.as_secs_f64();
        self.calm_replies = 0;
        if answered >= DELIVERED_RATIO * saved.rate {
            self.saved = None;
            (self.current, self.stage) = (saved.rate, saved.stage);
            (self.is_probing, self.changed) = (saved.is_probing, arrived);
        } else if answered > before.answered {
            self.stage = Stage::Backoff { intervals_left, before: Observation { answered, ..before } };
        }
    }
}
