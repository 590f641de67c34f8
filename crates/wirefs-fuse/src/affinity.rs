//! CPU affinity between a calling program and the thread that answers it.
//!
//! A program with sequential calls uses one CPU at a time, and so does the thread that answers it. On two CPUs each
//! call and each answer wakes a sleeping CPU, which takes several times longer than the work itself: 50 µs instead
//! of 8 on a machine with two virtual CPUs. The kernel wakes a thread on its last CPU, so a thread that was moved
//! away from its caller stays away. Therefore the thread periodically checks the caller's CPU and moves there. It
//! is not pinned.
//!
//! | sequential calls | |
//! |---|---|
//! | of one program, with little data | the thread moves: it checks after 4 calls, 8, 16 …, then every 1,024 |
//! | of several programs | the scheduler decides: all CPUs are in use already |
//! | with much data | the scheduler decides: one thread reads ahead while the other copies |

#[cfg(test)]
mod tests;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::fs::File;
use std::io::Read;
use wirefs_client::call::Call;

/// Calls of one program before the first check.
const CALLS_MIN: u32 = 4;
/// The longest interval of checks in calls.
const CALLS_MAX: u32 = 1024;
/// Calls with more data than this, in bytes, have much data.
const SMALL_BYTES_MAX: usize = 32 * 1024;
/// The largest size of `/proc/PID/stat` in bytes: a name of 64, and some fifty numbers.
const STAT_BYTES_MAX: usize = 1536;
/// The index of the last CPU among the fields after the name.
const PROCESSOR_FIELD: usize = 36;

/// The recent calls of one thread.
#[derive(Debug, Default)]
pub(crate) struct CallerAffinity {
    caller: u32,
    calls: u32,
    /// The number of calls at the next check.
    checks_at: u32,
}

impl CallerAffinity {
    /// Counts a call in this thread. Returns whether to check the caller's CPU.
    pub(crate) fn called(&mut self, caller: u32, call: &Call<'_>) -> bool {
        // The kernel's own call: no program waits for the answer.
        if caller == 0 {
            return false;
        }
        if caller != self.caller || has_much_data(call) {
            *self = CallerAffinity { caller, calls: 0, checks_at: CALLS_MIN };
            return false;
        }
        self.calls += 1;
        let is_due = self.calls == self.checks_at;
        if is_due {
            self.checks_at = self.calls.saturating_mul(2);
        }
        if is_due && self.calls >= CALLS_MAX {
            (self.calls, self.checks_at) = (0, CALLS_MAX);
        }
        is_due
    }
}

/// Whether the call takes longer than waking a thread.
pub(crate) fn has_much_data(call: &Call<'_>) -> bool {
    match call {
        Call::Read { count, .. } => usize::try_from(*count).is_ok_and(|count| count > SMALL_BYTES_MAX),
        Call::Write { data, .. } => data.len() > SMALL_BYTES_MAX,
        _ => false,
    }
}

/// Moves the calling thread to the last CPU of `caller`, if that is allowed; later the kernel may move it anywhere.
/// `None`: it stays.
///
/// # Cost
/// Three system calls, and three more to move.
pub(crate) fn move_to(caller: u32) -> Option<()> {
    let processor = processor_of(caller).filter(|processor| *processor != sched_getcpu())?;
    let allowed = sched_getaffinity(None).ok()?;
    if processor >= CpuSet::MAX_CPU || !allowed.is_set(processor) {
        return None;
    }
    let mut there = CpuSet::new();
    there.set(processor);
    sched_setaffinity(None, &there).ok()?;
    sched_setaffinity(None, &allowed).ok()
}

fn processor_of(thread: u32) -> Option<usize> {
    let mut stat = [0; STAT_BYTES_MAX];
    let bytes = File::open(format!("/proc/{thread}/stat")).ok()?.read(&mut stat).ok()?;
    processor_in(stat.get(..bytes)?)
}

/// The CPU in a thread's `stat`: `PID (NAME) STATE …`, where the name may contain any bytes.
fn processor_in(stat: &[u8]) -> Option<usize> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    fields.split_ascii_whitespace().nth(PROCESSOR_FIELD)?.parse().ok()
}
