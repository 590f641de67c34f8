//! Background maintenance of a tree: garbage collection, and sweeps for blocks that are unreachable because
//! their parents were lost.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wirefs_blocks::id::BlockId;
use wirefs_blocks::tree::{BlockTree, SweepResult};

/// The interval of checks for work.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The interval of checks while the collection waits for delayed blocks.
const BLOCKED_INTERVAL: Duration = Duration::from_secs(30);
/// The collection steps of one check.
const COLLECT_STEPS: usize = 16;
/// The delay of a sweep after the last loss. By then, missing blocks are gone or have returned.
const SWEEP_DELAY: Duration = Duration::from_secs(150);

/// The interval of sweeps of a shared tree: a deregistration may not have reached this node.
const SWEEP_INTERVAL: Duration = Duration::from_secs(600);
/// The maximum number of repeated sweeps because of delayed blocks.
const RETRIES_MAX: u32 = 3;

/// The schedule of sweeps: one for all losses, some time after the last of them.
#[derive(Debug, Default)]
struct Sweep {
    /// The losses seen so far.
    lost: u64,
    due: Option<Duration>,
    /// The position of a sweep in progress.
    after: Option<Option<BlockId>>,
    /// The sweep found blocks that may only be delayed.
    has_delayed: bool,
    /// Repeated sweeps since the last loss.
    retries: u32,
    /// The interval of sweeps without a loss.
    interval: Option<Duration>,
}

impl Sweep {
    /// The schedule of a shared tree: blocks fetched while this node joined may have been freed meanwhile.
    fn for_shared_tree() -> Sweep {
        Sweep { due: Some(SWEEP_DELAY), interval: Some(SWEEP_INTERVAL), ..Sweep::default() }
    }

    /// Returns the position at which to sweep now, given the total of losses; `None`: no sweep is due.
    fn next(&mut self, now: Duration, lost: u64) -> Option<Option<BlockId>> {
        if self.after.is_some() {
            return self.after;
        }
        if lost > self.lost {
            (self.lost, self.due, self.retries) = (lost, Some(now + SWEEP_DELAY), 0);
        }
        if self.due.is_none_or(|due| due > now) {
            return None;
        }
        self.due = None;
        self.after = Some(None);
        self.after
    }

    /// Records the result of one step. Losses found by the sweep itself do not count as new ones. After a
    /// sweep with delayed blocks, another one is scheduled.
    fn record(&mut self, now: Duration, part: SweepResult) {
        self.after = part.next.map(Some);
        self.lost += part.lost;
        self.has_delayed |= part.has_delayed;
        if self.after.is_none() && std::mem::take(&mut self.has_delayed) && self.retries < RETRIES_MAX {
            self.retries += 1;
            self.due = Some(now + SWEEP_DELAY);
        }
        if self.after.is_none() && self.due.is_none() {
            self.due = self.interval.map(|interval| now + interval);
        }
    }
}

/// The maintenance thread; it ends on drop.
#[derive(Debug)]
pub(crate) struct Maintenance {
    end: Arc<(Mutex<bool>, Condvar)>,
}

impl Maintenance {
    /// Starts the thread. Between checks it holds no reference to the tree.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub(crate) fn start(tree: &Arc<BlockTree>) -> io::Result<Maintenance> {
        let end = Arc::new((Mutex::new(false), Condvar::new()));
        let first = if tree.is_shared() { Sweep::for_shared_tree() } else { Sweep::default() };
        let (tree, signal) = (Arc::downgrade(tree), Arc::clone(&end));
        std::thread::Builder::new().name("wirefs-maintain".into()).spawn(move || {
            let (begun, mut sweep, mut wait) = (Instant::now(), first, CHECK_INTERVAL);
            while !has_ended(&signal, wait) {
                let Some(tree) = tree.upgrade() else { return };
                wait = run_once(&tree, begun.elapsed(), &mut sweep);
            }
        })?;
        Ok(Maintenance { end })
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        let (is_over, signal) = &*self.end;
        *is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        signal.notify_all();
    }
}

/// Waits; returns `true` when the thread must end.
fn has_ended((is_over, signal): &(Mutex<bool>, Condvar), wait: Duration) -> bool {
    let guard = is_over.lock().unwrap_or_else(PoisonError::into_inner);
    *signal.wait_timeout_while(guard, wait, |is_over| !*is_over).unwrap_or_else(PoisonError::into_inner).0
}

/// Runs due work; returns the time to the next check.
fn run_once(tree: &BlockTree, now: Duration, sweep: &mut Sweep) -> Duration {
    let before = tree.statistics();
    if before.backlog > 0 {
        tree.collect(COLLECT_STEPS);
        let after = tree.statistics();
        if after.deregistered == before.deregistered && after.backlog == before.backlog {
            return BLOCKED_INTERVAL;
        }
    }
    if let Some(from) = sweep.next(now, tree.statistics().lost) {
        sweep.record(now, tree.sweep(from));
    }
    CHECK_INTERVAL
}

#[cfg(test)]
mod tests;
