//! The store's clock, which stops while the driver makes no calls.
//!
//! A machine may be suspended for an hour while replies wait in the receive buffer. By the driver's clock
//! those packets would be too old; by this clock they arrive in time.

use std::time::Duration;

use wirefs_op::Time;

use crate::limits::STALL_MIN;

/// Converts the driver's time to the store's time.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    last: Option<Time>,
    stalled: Duration,
}

impl Clock {
    /// Advances to the driver's `now` and returns the store's time, which never goes back.
    pub(crate) fn advance(&mut self, now: Time) -> Time {
        let last = self.last.unwrap_or(now);
        let now = now.max(last);
        let gap = now - last;
        if gap > STALL_MIN {
            self.stalled += gap - STALL_MIN;
        }
        self.last = Some(now);
        self.store_time(now)
    }

    /// Returns the store's time for a driver's time that is not before the last call.
    fn store_time(&self, now: Time) -> Time {
        Time(now.0.saturating_sub(u64::try_from(self.stalled.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Returns the driver's time for a store's time that is not in the past.
    pub(crate) fn driver_time(&self, store_time: Time) -> Time {
        store_time + self.stalled
    }
}

#[cfg(test)]
mod tests;
