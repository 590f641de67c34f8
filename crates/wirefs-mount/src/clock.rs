//! The mount's clock. It includes the time in which the machine is suspended, as the server's lease terms do. With a
//! clock that stops in suspend, a mount would use expired leases.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use wirefs_op::{Time, Timestamp};

/// The number of paired readings of the two clocks.
const TRIES: usize = 4;

/// A clock that starts at zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    started: Duration,
}

impl Clock {
    /// Starts a clock, and returns the time of day of its start.
    pub(super) fn start() -> (Clock, Timestamp) {
        // The clocks are read one after the other; the shortest of a few readings counts.
        let tries = std::array::from_fn::<_, TRIES, _>(|_| {
            let (started, day) = (since_boot(), time_of_day());
            (since_boot().saturating_sub(started), Clock { started }, day)
        });
        let [first, rest @ ..] = tries;
        let (_, clock, day) =
            rest.into_iter().fold(first, |best, next| if next.0 < best.0 { next } else { best });
        (clock, day)
    }

    pub(super) fn elapsed(&self) -> Duration {
        since_boot().saturating_sub(self.started)
    }

    pub(super) fn now(&self) -> Time {
        Time(u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

fn time_of_day() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { secs: i64::try_from(now.as_secs()).unwrap_or(i64::MAX), nanos: now.subsec_nanos() }
}

/// `CLOCK_BOOTTIME` of `clock_gettime(2)`; `Instant` is `CLOCK_MONOTONIC`, which stops in suspend.
fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}
