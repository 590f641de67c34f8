//! Where the one runs whose calls are answered.
//!
//! A program that asks, waits, and asks again uses one processor at a time, and so does the thread that answers it. On two, each question
//! and each answer wakes one that sleeps, which takes several times as long as both take together: 50 us where 8 do, on a machine of two
//! virtual processors. The kernel leaves a thread that slept on the processor where it slept, so a thread that once got away from its
//! caller stays away. It therefore looks now and then where its caller is, and goes there; nothing holds it there.
//!
//! | calls one after the other | |
//! |---|---|
//! | of one program, with little data | near: looked for after 4 calls, 8, 16 …, then each 1,024 |
//! | of several | wherever the kernel thinks right: they use all processors already |
//! | with much data | the same: one reads ahead while the other copies |

#[cfg(test)]
mod tests;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::fs::File;
use std::io::Read;
use wirefs_client::call::Call;

/// So many calls of one program make it worth looking where that is.
const CALLS_MIN: u32 = 4;
/// It is looked for again after so many calls at most.
const CALLS_MAX: u32 = 1024;
/// A call with more data than this, in bytes, is one with much.
const LITTLE_BYTES_MAX: usize = 32 * 1024;
/// `/proc/PID/stat` is at most this long, in bytes: a name of 64, and some fifty numbers.
const STAT_BYTES_MAX: usize = 1536;
/// Which of its fields behind the name is the processor that the thread last ran on.
const PROCESSOR_FIELD: usize = 36;

/// What one thread knows of whose calls it answers.
#[derive(Debug, Default)]
pub(crate) struct Nearness {
    caller: u32,
    calls: u32,
    /// It is looked where the caller is at so many calls.
    looks_at: u32,
}

impl Nearness {
    /// A call of this thread came. Says whether to look where that is.
    pub(crate) fn called(&mut self, caller: u32, call: &Call<'_>) -> bool {
        // The kernel's own: it waits for no answer.
        if caller == 0 {
            return false;
        }
        if caller != self.caller || has_much_data(call) {
            *self = Nearness { caller, calls: 0, looks_at: CALLS_MIN };
            return false;
        }
        self.calls += 1;
        let looks = self.calls == self.looks_at;
        if looks {
            self.looks_at = self.calls.saturating_mul(2);
        }
        if looks && self.calls >= CALLS_MAX {
            (self.calls, self.looks_at) = (0, CALLS_MAX);
        }
        looks
    }
}

/// A call that takes longer than a thread takes to wake.
pub(crate) fn has_much_data(call: &Call<'_>) -> bool {
    match call {
        Call::Read { count, .. } => usize::try_from(*count).is_ok_and(|count| count > LITTLE_BYTES_MAX),
        Call::Write { data, .. } => data.len() > LITTLE_BYTES_MAX,
        _ => false,
    }
}

/// Has the calling thread go on where `caller` last ran, if it may; from there the kernel may take it anywhere. `None`: it stays.
///
/// # Cost
/// Three system calls, with three more when it is elsewhere.
pub(crate) fn go_to(caller: u32) -> Option<()> {
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

/// The processor that a thread's `stat` names: `PID (NAME) STATE …`, where the name may hold anything.
fn processor_in(stat: &[u8]) -> Option<usize> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    fields.split_ascii_whitespace().nth(PROCESSOR_FIELD)?.parse().ok()
}
