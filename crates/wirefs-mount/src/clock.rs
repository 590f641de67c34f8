//! The mount's clock, which goes on while the machine sleeps: the server counts that time too, and takes back by it what it had
//! promised. A clock that stood still would let a mount believe for hours what others have changed since.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use wirefs_op::{Time, Timestamp};

/// How often the two clocks are compared.
const TRIES: usize = 4;

/// Counts from when it was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    started: Duration,
}

impl Clock {
    /// Begins to count, and says what time of day it is then.
    pub(super) fn start() -> (Clock, Timestamp) {
        // The two are read one after the other: of a few tries the one that took the least.
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
