//! The store's own time, which stands still while its driver does.
//!
//! A suspended machine sleeps for an hour, and its packets wait in the receive buffer for as long. Measured by the
//! driver's clock they would all be too old; measured by this one they came in time.

use std::time::Duration;

use wirefs_op::Time;

use crate::limits::STALL_MIN;

/// Turns the driver's time into the store's.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    last: Option<Time>,
    stalled: Duration,
}

impl Clock {
    /// The store's time at the driver's `now`; it never goes back.
    pub(crate) fn run(&mut self, now: Time) -> Time {
        let last = self.last.unwrap_or(now);
        let now = now.max(last);
        let gap = now - last;
        if gap > STALL_MIN {
            self.stalled += gap - STALL_MIN;
        }
        self.last = Some(now);
        self.at(now)
    }

    /// The store's time at a moment of the driver's that is not before the last one told.
    fn at(&self, now: Time) -> Time {
        Time(now.0.saturating_sub(u64::try_from(self.stalled.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The driver's time at a moment of the store's that is still to come.
    pub(crate) fn driver_time(&self, run: Time) -> Time {
        run + self.stalled
    }
}

#[cfg(test)]
mod tests;
