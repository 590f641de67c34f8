//! How long something takes: smoothed, how far it strays, and the shortest lately.

use std::time::Duration;

use wirefs_op::Time;

/// For so long the shortest time is remembered; it is forgotten within twice that.
const SHORTEST_SPAN: Duration = Duration::from_secs(150);
/// Samples that the smoothed time takes in during the time itself; more would follow each of a thousand packets.
const SAMPLES_PER_LAP: u32 = 16;

/// An estimate of a time, in the store's clock.
///
/// # Source
/// V. Jacobson, "Congestion avoidance and control" (1988), as RFC 6298 has it, but fed at most sixteen times in the time
/// that it estimates.
#[derive(Debug, Default)]
pub(crate) struct Lap {
    smoothed: Option<Duration>,
    strays: Duration,
    sampled: Time,
    shortest: Shortest,
}

impl Lap {
    /// Takes in one time, measured at `now`.
    pub(crate) fn note(&mut self, now: Time, taken: Duration) {
        self.shortest.note(now, taken);
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.strays, self.sampled) = (Some(taken), taken / 8, now);
            return;
        };
        if now - self.sampled < smoothed / SAMPLES_PER_LAP {
            return;
        }
        self.sampled = now;
        // Learned soon, forgotten slowly: one calm moment does not make a wild way tame.
        let strays = taken.abs_diff(smoothed);
        self.strays = if strays > self.strays {
            (self.strays * 3 + strays) / 4
        } else {
            (self.strays * 15 + strays) / 16
        };
        self.smoothed = Some((smoothed * 7 + taken) / 8);
    }

    /// The smoothed time; none before the first.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// About the average distance of a time from the smoothed one.
    pub(crate) fn strays(&self) -> Duration {
        self.strays
    }

    /// The shortest time of the last minutes; none before the first.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        self.shortest.value()
    }

    /// Forgets the shortest time, because the way is another one now.
    pub(crate) fn forget_shortest(&mut self) {
        self.shortest = Shortest::default();
    }
}

/// The shortest time of this span and the one before.
#[derive(Debug, Default)]
struct Shortest {
    begun: Time,
    current: Option<Duration>,
    before: Option<Duration>,
}

impl Shortest {
    fn note(&mut self, now: Time, taken: Duration) {
        if now - self.begun >= SHORTEST_SPAN {
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
