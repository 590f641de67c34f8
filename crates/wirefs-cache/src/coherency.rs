//! What may be believed: for how long after it was asked for, or for as long as the server has promised to tell first.

use std::time::Duration;
use wirefs_op::Time;

/// How long something leased may be believed: until it is taken back.
pub const FOREVER: Duration = Duration::MAX;

/// As of when something is known, and on what promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// When it was asked for: it was so at some moment since.
    pub at: Time,
    /// The server said then that it would tell before that changes, and has not told.
    pub leased: bool,
}

impl Freshness {
    /// Asked for at `at`, and nothing promised.
    pub fn since(at: Time) -> Freshness {
        Freshness { at, leased: false }
    }

    /// The least of two: as old as the older one, leased if both are.
    #[must_use]
    pub fn and(self, other: Freshness) -> Freshness {
        Freshness { at: self.at.min(other.at), leased: self.leased && other.leased }
    }
}

/// What may be believed at one moment. One value for all that is known, so that nobody else asks how.
#[derive(Clone, Copy, Debug)]
pub struct Coherency {
    /// The moment.
    pub now: Time,
    /// For how long anything is believed after it was asked for.
    pub window: Duration,
    /// Nothing that was asked for up to then is believed within the window: a program has got a lock by a name since, and what others did
    /// before they let go of it may be newer.
    pub requested_after: Option<Time>,
    /// Leases count for what was asked for after this; `None`: none do.
    pub leased_since: Option<Time>,
    /// The server was heard of late, so that it still keeps its promises.
    pub leases_valid: bool,
}

impl Coherency {
    /// Nothing but the window counts.
    pub fn within(now: Time, window: Duration) -> Coherency {
        Coherency { now, window, requested_after: None, leased_since: None, leases_valid: false }
    }

    /// Whether it is leased, be leases valid at the moment or not.
    pub fn is_leased(&self, freshness: Freshness) -> bool {
        freshness.leased && self.leased_since.is_some_and(|since| freshness.at > since)
    }

    /// Whether it may be believed.
    pub fn is_valid(&self, freshness: Freshness) -> bool {
        self.is_valid_since(freshness, self.now)
    }

    /// Whether it was so at some moment since `since`, or may be taken for that: it was asked for since, or may be believed, or might
    /// have been then.
    pub fn is_valid_since(&self, freshness: Freshness, since: Time) -> bool {
        (since < freshness.at + self.window && self.is_recent(freshness))
            || (self.leases_valid && self.is_leased(freshness))
    }

    /// Whether what is asked for now may be believed for any time at all.
    pub fn allows_caching(&self) -> bool {
        self.leases_valid || !self.window.is_zero()
    }

    /// For how long it may still be believed.
    pub fn ttl(&self, freshness: Freshness) -> Duration {
        if self.leases_valid && self.is_leased(freshness) {
            FOREVER
        } else if self.is_recent(freshness) {
            (freshness.at + self.window) - self.now
        } else {
            Duration::ZERO
        }
    }

    /// Whether it was asked for since the last lock by a name.
    fn is_recent(&self, freshness: Freshness) -> bool {
        self.requested_after.is_none_or(|after| freshness.at > after)
    }

    /// What is known of something once `new` was heard of it after `old`; where it `is_same`, an older promise goes on.
    pub fn renewed(&self, old: Option<Freshness>, new: Freshness, is_same: bool) -> Freshness {
        match old.filter(|old| is_same && self.is_leased(*old)) {
            Some(old) => Freshness { at: old.at.max(new.at), leased: true },
            None => new,
        }
    }
}

#[cfg(test)]
mod tests;
