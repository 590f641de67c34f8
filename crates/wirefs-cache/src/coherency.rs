//! Validity of cached data: for a time window after its request, or while the server's lease lasts.

use std::time::Duration;
use wirefs_op::Time;

/// The validity of leased data: until the lease is recalled.
pub const FOREVER: Duration = Duration::MAX;

/// The age of cached data, and whether it is leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// The time of the request that returned the data. The data was correct at some moment since then.
    pub at: Time,
    /// True if the server granted a lease on the data and has not recalled it.
    pub leased: bool,
}

impl Freshness {
    /// Creates the freshness of unleased data that was requested at `at`.
    pub fn since(at: Time) -> Freshness {
        Freshness { at, leased: false }
    }

    /// Returns the weaker of two: the older request time, and leased only if both are.
    #[must_use]
    pub fn and(self, other: Freshness) -> Freshness {
        Freshness { at: self.at.min(other.at), leased: self.leased && other.leased }
    }
}

/// The rules for using cached data at one moment. All decisions on validity are made here.
#[derive(Clone, Copy, Debug)]
pub struct Coherency {
    /// The current time.
    pub now: Time,
    /// The window of time after a request in which its data may be used (Op's coherency window).
    pub window: Duration,
    /// Data requested up to this time is not valid by the window alone. A program has acquired a lock file
    /// since, and earlier changes of other clients may be newer than the data.
    pub requested_after: Option<Time>,
    /// Leases on data requested after this time count; `None`: no lease counts.
    pub leased_since: Option<Time>,
    /// True if the last answered request is recent enough for leases to be valid.
    pub leases_valid: bool,
}

impl Coherency {
    /// Creates rules in which only the window counts.
    pub fn within(now: Time, window: Duration) -> Coherency {
        Coherency { now, window, requested_after: None, leased_since: None, leases_valid: false }
    }

    /// Returns true if the data is leased, whether or not leases are valid at the moment.
    pub fn is_leased(&self, freshness: Freshness) -> bool {
        freshness.leased && self.leased_since.is_some_and(|since| freshness.at > since)
    }

    /// Returns true if the data may be used.
    pub fn is_valid(&self, freshness: Freshness) -> bool {
        self.is_valid_since(freshness, self.now)
    }

    /// Returns true if the data is valid for a reader that started at `since`: it was requested later, may be
    /// used now, or could have been used at `since`.
    pub fn is_valid_since(&self, freshness: Freshness, since: Time) -> bool {
        (since < freshness.at + self.window && self.is_recent(freshness))
            || (self.leases_valid && self.is_leased(freshness))
    }

    /// Returns true if data requested now may be used for any time at all.
    pub fn allows_caching(&self) -> bool {
        self.leases_valid || !self.window.is_zero()
    }

    /// Returns how long the data may still be used.
    pub fn ttl(&self, freshness: Freshness) -> Duration {
        if self.leases_valid && self.is_leased(freshness) {
            FOREVER
        } else if self.is_recent(freshness) {
            (freshness.at + self.window) - self.now
        } else {
            Duration::ZERO
        }
    }

    /// Returns true if the data was requested after the last lock file was acquired.
    fn is_recent(&self, freshness: Freshness) -> bool {
        self.requested_after.is_none_or(|after| freshness.at > after)
    }

    /// Returns the freshness after a new reply. If the data `is_same`, an older lease remains valid.
    pub fn renewed(&self, old: Option<Freshness>, new: Freshness, is_same: bool) -> Freshness {
        match old.filter(|old| is_same && self.is_leased(*old)) {
            Some(old) => Freshness { at: old.at.max(new.at), leased: true },
            None => new,
        }
    }
}

#[cfg(test)]
mod tests;
