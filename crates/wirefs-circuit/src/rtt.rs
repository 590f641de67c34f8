//! How long a path takes there and back.

use std::time::Duration;

use wirefs_op::Time;

use crate::limits::{ACK_DELAY_MAX, PATIENCE_MAX, PATIENCE_MIN};

/// What is taken for the round trip before one was measured.
const GUESS: Duration = Duration::from_millis(10);
/// After so long the shortest round trip is measured anew: the way may have changed.
const SHORTEST_LIFE: Duration = Duration::from_secs(10);

/// # Source
/// RFC 6298, section 2: smoothed by 1/8, its variation by 1/4.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Duration,
    shortest: Duration,
    shortest_at: Time,
}

impl Rtt {
    pub(crate) fn new() -> Rtt {
        Rtt {
            smoothed: None,
            variation: GUESS / 2,
            latest: GUESS,
            shortest: GUESS,
            shortest_at: Time::default(),
        }
    }

    /// Takes a measured round trip, of which the peer says that it waited `waited` before it acknowledged.
    pub(crate) fn note(&mut self, now: Time, measured: Duration, waited: Duration) {
        if self.smoothed.is_none() || measured <= self.shortest || now.since(self.shortest_at) > SHORTEST_LIFE
        {
            self.shortest = measured;
            self.shortest_at = now;
        }
        // The peer's word counts only as far as it leaves a possible round trip.
        let own = measured.saturating_sub(waited).max(self.shortest);
        self.latest = own;
        match self.smoothed {
            None => {
                self.smoothed = Some(own);
                self.variation = own / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(own)) / 4;
                self.smoothed = Some((smoothed * 7 + own) / 8);
            }
        }
    }

    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(GUESS)
    }

    /// As it is on average; none before it was measured.
    pub(crate) fn measured(&self) -> Option<Duration> {
        self.smoothed
    }

    pub(crate) fn shortest(&self) -> Duration {
        self.shortest
    }

    /// How long an acknowledgement may take before the path is asked.
    pub(crate) fn patience(&self) -> Duration {
        (self.smoothed() + self.variation * 4 + ACK_DELAY_MAX).max(PATIENCE_MIN)
    }

    /// The patience after so many questions without an answer.
    pub(crate) fn patience_after(&self, questions: u32) -> Duration {
        let patience = self.patience();
        (patience * (1 << questions.min(8))).min(PATIENCE_MAX.max(patience))
    }

    /// A packet that is older than this when a later one was acknowledged is lost.
    ///
    /// # Source
    /// RFC 9002, section 6.1.2: 9/8 of the round trip.
    pub(crate) fn overtaken(&self) -> Duration {
        (self.smoothed().max(self.latest) * 9 / 8).max(Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests;
