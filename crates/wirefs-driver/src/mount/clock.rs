//! The mount's clock, which goes on while the machine sleeps: the server counts that time too, and takes back by it what it had
//! promised. A clock that stood still would let a mount believe for hours what others have changed since.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wirefs_op::Time;

/// Counts from when it was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    started: Duration,
}

impl Clock {
    pub(super) fn start() -> Clock {
        Clock { started: since_boot() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        since_boot().saturating_sub(self.started)
    }

    pub(super) fn now(&self) -> Time {
        Time(u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// `CLOCK_BOOTTIME` of `clock_gettime(2)`; `Instant` is `CLOCK_MONOTONIC`, which stops in suspend.
fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}
