//! CPU affinity between a calling program and the thread that answers it.
//!
//! A program with sequential calls uses one CPU at a time, and so does the thread that answers it. On two CPUs each
//! call and each answer wakes a sleeping CPU, which takes several times longer than the work itself: 50 µs instead
//! of 8 on a machine with two virtual CPUs. The kernel wakes a thread on its last CPU, so a thread that was moved
//! away from its caller stays away. Therefore it is periodically moved to the caller's CPU. It is not pinned.
//!
//! Only `/proc/PID/stat` tells a caller's CPU, and since Linux 6.18 reading it waits while that process is in
//! `execve`. An `execve` closes files, and each close of a file in the mount waits for a thread of the mount. So a
//! thread of its own reads and moves ([`Mover`]): threads that answer calls never wait for a caller.
//!
//! | sequential calls | |
//! |---|---|
//! | of one program, with little data | the thread is moved, with checks after 4 calls, 8, 16 …, then every 1,024 |
//! | of several programs | the scheduler decides: all CPUs are in use already |
//! | with much data | the scheduler decides: one thread reads ahead while the other copies |

#[cfg(test)]
mod tests;

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
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

/// A thread that answers calls, and the caller to whose CPU it is to move.
#[derive(Debug)]
struct Move {
    thread: Pid,
    /// The CPU of `thread`.
    processor: usize,
    caller: u32,
}

/// Moves threads that answer calls. Its own thread ends with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Mover(SyncSender<Move>);

impl Mover {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start() -> io::Result<Mover> {
        let (sender, moves) = mpsc::sync_channel(1);
        thread::Builder::new().name("wirefs-affinity".into()).spawn(move || {
            for next in moves {
                // Without the rights, or after the end of the caller, the thread stays where it is.
                let _moved = carry_out(&next);
            }
        })?;
        Ok(Mover(sender))
    }

    /// Has the calling thread moved to the last CPU of `caller` soon. Skipped while another move waits.
    ///
    /// # Cost
    /// The wake-up of a thread.
    pub(crate) fn move_to(&self, caller: u32) {
        let _skipped = self.0.try_send(Move { thread: gettid(), processor: sched_getcpu(), caller });
    }
}

/// `None`: the thread stays.
///
/// # Cost
/// Three system calls, and three more to move.
fn carry_out(Move { thread, processor, caller }: &Move) -> Option<()> {
    let wanted = processor_of(*caller).filter(|wanted| wanted != processor)?;
    let allowed = sched_getaffinity(Some(*thread)).ok()?;
    if wanted >= CpuSet::MAX_CPU || !allowed.is_set(wanted) {
        return None;
    }
    let mut there = CpuSet::new();
    there.set(wanted);
    sched_setaffinity(Some(*thread), &there).ok()?;
    sched_setaffinity(Some(*thread), &allowed).ok()
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
