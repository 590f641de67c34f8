//! How fast a line is that limits its carrier.

use std::time::{Duration, Instant};

/// A carrier that was blocked counts as limited for this long.
const LIMITED: Duration = Duration::from_secs(1);
/// Shorter measurements are too coarse.
const SAMPLE_MIN: Duration = Duration::from_millis(2);

/// Measures while the carrier is blocked: what it takes then is what the line carries.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The carrier was blocked then, and has taken so many bytes since.
    blocked: Option<(Instant, usize)>,
    /// In bytes per second, as an average.
    rate: Option<f64>,
}

impl Line {
    /// Counts bytes that the carrier has taken.
    pub(super) fn took(&mut self, bytes: usize) {
        if let Some((_, taken)) = &mut self.blocked {
            *taken += bytes;
        }
    }

    /// Notes that the carrier is blocked.
    pub(super) fn blocked(&mut self, now: Instant) {
        if let Some((since, taken)) = self.blocked {
            let time = now.duration_since(since);
            // A frame that is half in the kernel was counted when it was taken.
            if time < SAMPLE_MIN || (taken == 0 && time < LIMITED) {
                return;
            }
            // After a pause the line was not the limit.
            if time < LIMITED {
                let rate = taken as f64 / time.as_secs_f64();
                self.rate = Some(self.rate.map_or(rate, |old| old + (rate - old) / 4.0));
            }
        }
        self.blocked = Some((now, 0));
    }

    /// Returns whether the line limits the carrier.
    pub(super) fn is_limit(&self, now: Instant) -> bool {
        self.blocked.is_some_and(|(since, _)| now.duration_since(since) < LIMITED)
    }

    /// Returns the rate of the line in bytes per second; 0 until it is known.
    pub(super) fn rate(&self) -> f64 {
        self.rate.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
