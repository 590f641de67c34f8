//! Limits the rate of an action.

use std::time::{Duration, Instant};

/// Whether the action is due, and when it last ran.
#[derive(Debug)]
pub(super) struct RateLimit {
    gap: Duration,
    done: Option<Instant>,
    is_wanted: bool,
}

impl RateLimit {
    /// Allows the action once per `gap`.
    pub(super) fn every(gap: Duration) -> RateLimit {
        RateLimit { gap, done: None, is_wanted: false }
    }

    pub(super) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// When the action should run, if it is wanted.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        self.is_wanted.then(|| self.done.map_or(now, |done| done + self.gap))
    }

    /// Whether the action should run now. If so, it counts as done.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let is_due = self.deadline(now).is_some_and(|deadline| deadline <= now);
        if is_due {
            self.is_wanted = false;
            self.done = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests;
