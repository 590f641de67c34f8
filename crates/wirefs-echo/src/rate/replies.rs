//! What single replies tell of the rate, as they are heard.

use std::time::Duration;

use wirefs_op::Time;

use super::{Before, Governor, PASSED, QUEUE_MIN, Rate, Stage, is_queue};

/// Part of a rate that was decreased whose replies tell that it is still too much.
const STILL: f64 = 0.95;
/// Part of a rate that was held whose replies tell, within a few of them, that the way has become narrower.
const SLOWER: f64 = 0.75;
/// Replies one after the other behind a queue that end the search for a rate.
const QUEUED_REPLIES: u32 = 16;
/// Replies one after the other behind no queue that tell how much the way carries: more than one that is held to a rate
/// usually lets through at once.
const CALM_REPLIES: u32 = 32;

impl Governor {
    /// Hears how long a reply was on the way. While the rate is being found, a queue ends that at once: what is in it was
    /// sent a lap ago, and more of it is under way.
    ///
    /// Replies behind a queue come at the rate of what made it. A batch that our own machine held up for a moment comes back
    /// late too, but as fast as it was sent: that ends nothing.
    ///
    /// The same ends a rate that was held, where the replies come much more slowly than was sent. All of this holds only while
    /// all is sent that is allowed (`is_pressed`): else the replies are as slow as what was sent.
    pub(crate) fn hear(
        &mut self,
        arrived: Time,
        way: Duration,
        loss: f64,
        shortest: Duration,
        is_pressed: bool,
    ) {
        let delay = way.saturating_sub(shortest);
        self.acquit(arrived, is_queue(delay, shortest));
        // What was sent before a decrease says nothing about it.
        let is_old = matches!(self.stage, Stage::Easing { .. }) && arrived - self.eased < way;
        if !is_queue(delay, shortest) || !is_pressed || is_old {
            self.queued_replies = 0;
            return;
        }
        if self.queued_replies == 0 {
            self.queued_since = arrived;
        }
        self.queued_replies += 1;
        let span = arrived - self.queued_since;
        let passed = match (self.stage, self.rule) {
            (_, Rate::Fixed(_)) => return,
            // It was not enough.
            (Stage::Easing { .. }, _) => STILL,
            (Stage::Finding, _) => self.passed(),
            (Stage::Holding, _) if self.is_beyond => self.passed(),
            (Stage::Holding, _) => SLOWER,
        };
        if self.queued_replies < QUEUED_REPLIES || span < QUEUE_MIN {
            return;
        }
        let answered = f64::from(self.queued_replies - 1) / span.as_secs_f64();
        self.queued_replies = 0;
        if answered >= passed * self.current {
            return;
        }
        let (rate, was_finding) = (self.current, self.is_finding());
        let before = Before { rate, answered, loss, delay, is_queued: true, is_narrow: true, was_finding };
        self.ease(arrived, before, shortest);
    }

    /// Hears after a decrease whether the delay has passed by itself. A queue goes on while so much is sent: what was sent before
    /// the decrease and comes back fast and undelayed, behind what was late, tells that the way carries it. Where something
    /// held up both ends or this machine for a moment, that is so, and the rate is again what it was.
    fn acquit(&mut self, arrived: Time, is_late: bool) {
        let (Some(suspended), Stage::Easing { epochs, before }) = (self.suspended, self.stage) else {
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
        if answered >= PASSED * suspended.rate {
            self.suspended = None;
            (self.current, self.stage) = (suspended.rate, suspended.stage);
            (self.is_beyond, self.changed) = (suspended.is_beyond, arrived);
        } else if answered > before.answered {
            self.stage = Stage::Easing { epochs, before: Before { answered, ..before } };
        }
    }
}
