//! A token bucket.

use std::time::{Duration, Instant};

/// The balance grows no further than what the rate gives in this time, so that a pause is not followed by a burst.
const SAVED_MAX: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Bytes per second; `None`: no limit. Never 0.
    rate: Option<u64>,
    /// Bytes that may be moved, times 10⁹; negative after a large frame.
    balance: i128,
    /// The time of the balance; `None` before the first use.
    since: Option<Instant>,
}

impl Bucket {
    pub(super) fn new(rate: Option<u64>) -> Bucket {
        Bucket { rate: rate.filter(|rate| *rate > 0), balance: 0, since: None }
    }

    pub(super) fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Begins anew with another rate: a debt of the old one would stop a faster one for as long.
    pub(super) fn set(&mut self, rate: Option<u64>) {
        *self = Bucket::new(rate);
    }

    /// Returns how long nothing may be moved; `None`: something may be moved now.
    pub(super) fn wait(&mut self, now: Instant) -> Option<Duration> {
        let rate = self.rate?;
        self.accrue(now, rate);
        let debt = u64::try_from(-self.balance).ok().filter(|debt| *debt > 0)?;
        Some(Duration::from_nanos(debt.div_ceil(rate)))
    }

    /// Subtracts bytes that were moved.
    pub(super) fn subtract(&mut self, now: Instant, bytes: usize) {
        if let Some(rate) = self.rate {
            self.accrue(now, rate);
            self.balance -= bytes as i128 * 1_000_000_000;
        }
    }

    fn accrue(&mut self, now: Instant, rate: u64) {
        let passed = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.since = Some(now);
        let most = SAVED_MAX.as_nanos() as i128 * i128::from(rate);
        self.balance = (self.balance + passed.as_nanos() as i128 * i128::from(rate)).min(most);
    }
}
