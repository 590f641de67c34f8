//! What is done when it is wanted, but not too often.

use std::time::{Duration, Instant};

/// Remembers whether something is wanted and when it was done last.
#[derive(Debug)]
pub(super) struct Spaced {
    gap: Duration,
    done: Option<Instant>,
    is_wanted: bool,
}

impl Spaced {
    /// Done at most once in `gap`.
    pub(super) fn by(gap: Duration) -> Spaced {
        Spaced { gap, done: None, is_wanted: false }
    }

    pub(super) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// When it is to be done, if it is wanted.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        self.is_wanted.then(|| self.done.map_or(now, |done| done + self.gap))
    }

    /// Whether it is to be done now; taken as done then.
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
