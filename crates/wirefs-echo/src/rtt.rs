//! Estimates a time: smoothed value, variation, and recent minimum.

use std::time::Duration;

use wirefs_op::Time;

/// Window of the minimum; a minimum expires after one to two windows.
const MIN_SPAN: Duration = Duration::from_secs(150);
/// Samples per estimated time that the smoothed value uses; more would follow each of a thousand packets.
const SAMPLES_PER_RTT: u32 = 16;

/// An estimator of a time, on the store's clock.
///
/// # Source
/// V. Jacobson, "Congestion avoidance and control" (1988), as in RFC 6298, but with at most sixteen samples
/// per estimated time.
#[derive(Debug, Default)]
pub(crate) struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    sampled: Time,
    minimum: WindowedMin,
}

impl RttEstimator {
    /// Adds a sample taken at `now`.
    pub(crate) fn sample(&mut self, now: Time, taken: Duration) {
        self.minimum.sample(now, taken);
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.variation, self.sampled) = (Some(taken), taken / 8, now);
            return;
        };
        if now - self.sampled < smoothed / SAMPLES_PER_RTT {
            return;
        }
        self.sampled = now;
        // Increases fast and decreases slowly: a short calm does not make a path with high jitter stable.
        let variation = taken.abs_diff(smoothed);
        self.variation = if variation > self.variation {
            (self.variation * 3 + variation) / 4
        } else {
            (self.variation * 15 + variation) / 16
        };
        self.smoothed = Some((smoothed * 7 + taken) / 8);
    }

    /// Returns the smoothed time; `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Returns the average deviation from the smoothed time.
    pub(crate) fn variation(&self) -> Duration {
        self.variation
    }

    /// Returns the minimum of the last minutes; `None` before the first sample.
    pub(crate) fn min(&self) -> Option<Duration> {
        self.minimum.value()
    }

    /// Discards the minimum, because the path has changed.
    pub(crate) fn reset_min(&mut self) {
        self.minimum = WindowedMin::default();
    }
}

/// The minimum of the current window and the previous one.
#[derive(Debug, Default)]
struct WindowedMin {
    begun: Time,
    current: Option<Duration>,
    before: Option<Duration>,
}

impl WindowedMin {
    fn sample(&mut self, now: Time, taken: Duration) {
        if now - self.begun >= MIN_SPAN {
            (self.begun, self.before, self.current) = (now, self.current, None);
        }
        self.current = Some(self.current.map_or(taken, |current| current.min(taken)));
    }

    fn value(&self) -> Option<Duration> {
        self.current.into_iter().chain(self.before).min()
    }
}

#[cfg(test)]
mod tests;
