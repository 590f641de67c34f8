//! The time that a job takes in its thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use wirefs_op::Time;
use wirefs_op::message::times::Rtimes;
use wirefs_server::JobTimes;

/// A request that took less is not worth a report.
const REPORT_MIN: Duration = Duration::from_micros(20);

/// The time that a job takes in its thread. The thread waits only for the file system below, and for its peer.
pub(super) struct Spent {
    begun: Instant,
    /// The processor time of the thread at the beginning; zero if nobody wants to know.
    processor: Duration,
    /// Waits until the peer reads.
    stalled: Duration,
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

impl Spent {
    /// Begins a job in this thread.
    pub(super) fn begin(times: &JobTimes) -> Spent {
        let processor = if times.are_requested { processor_time() } else { Duration::ZERO };
        Spent { begun: Instant::now(), processor, stalled: Duration::ZERO }
    }

    /// Begins a wait for the peer.
    pub(super) fn stall(&self) -> Instant {
        Instant::now()
    }

    /// Ends a wait for the peer.
    pub(super) fn resume(&mut self, stall: Instant) {
        self.stalled += stall.elapsed();
    }

    /// Returns the times up to now; `None` if they are not worth a report at the end of a job.
    pub(super) fn times(&self, job: &JobTimes, now: Time, is_parked: bool) -> Option<Rtimes> {
        let elapsed = self.begun.elapsed();
        let took = elapsed.saturating_sub(self.stalled);
        let started = now.since(job.received).saturating_sub(elapsed);
        let recall = job.parked.map_or(Duration::ZERO, |parked| now.since(parked).saturating_sub(elapsed));
        let queue = started.saturating_sub(recall);
        if !is_parked && queue + recall + took < REPORT_MIN {
            return None;
        }
        let run = processor_time().saturating_sub(self.processor).min(took);
        Some(Rtimes {
            is_parked,
            queue_us: micros(queue),
            run_us: micros(run),
            disk_us: micros(took - run),
            recall_us: micros(recall),
        })
    }
}
