//! What is done for a tree while nobody asks: collection, and sweeping up what only blocks named that are lost.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wirefs_blocks::id::BlockId;
use wirefs_blocks::tree::{BlockTree, Swept};

/// How often it is looked whether there is something to do.
const LOOK_EACH: Duration = Duration::from_secs(1);
/// The same while what is to be collected cannot be had.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Steps of collection that are done at a time.
const COLLECT_STEPS: usize = 16;
/// How long after a loss it is swept: by then what is missing is gone or back.
const SWEEP_AFTER: Duration = Duration::from_secs(150);

/// How often a tree is swept that several nodes change: what others let go of may not have come here.
const SWEEP_EACH: Duration = Duration::from_secs(600);
/// How often it is swept once more since something was still late.
const AGAIN_MAX: u32 = 3;

/// When to sweep: once for all that was lost until then, some time after the last of it.
#[derive(Debug, Default)]
struct Sweep {
    /// Losses that were seen, and when it is time to sweep on their account.
    lost: u64,
    due: Option<Duration>,
    /// Where a sweep goes on that has begun.
    after: Option<Option<BlockId>>,
    /// It found blocks that may only be late.
    has_late: bool,
    /// Sweeps since the last loss that were made for such blocks.
    again: u32,
    /// How often it is swept without a loss.
    each: Option<Duration>,
}

impl Sweep {
    /// Of a tree that several nodes change: what a node got while it came may have been let go of meanwhile.
    fn of_common() -> Sweep {
        Sweep { due: Some(SWEEP_AFTER), each: Some(SWEEP_EACH), ..Sweep::default() }
    }

    /// Where to go on sweeping now, given the losses until now; `None`: there is nothing to sweep.
    fn next(&mut self, now: Duration, lost: u64) -> Option<Option<BlockId>> {
        if self.after.is_some() {
            return self.after;
        }
        if lost > self.lost {
            (self.lost, self.due, self.again) = (lost, Some(now + SWEEP_AFTER), 0);
        }
        if self.due.is_none_or(|due| due > now) {
            return None;
        }
        self.due = None;
        self.after = Some(None);
        self.after
    }

    /// A part was swept. What that itself did not find is no new loss, what others miss meanwhile is. What is still late
    /// keeps some things for now, so it is come again for these.
    fn swept(&mut self, now: Duration, part: Swept) {
        self.after = part.next.map(Some);
        self.lost += part.lost;
        self.has_late |= part.has_late;
        if self.after.is_none() && std::mem::take(&mut self.has_late) && self.again < AGAIN_MAX {
            self.again += 1;
            self.due = Some(now + SWEEP_AFTER);
        }
        if self.after.is_none() && self.due.is_none() {
            self.due = self.each.map(|each| now + each);
        }
    }
}

/// Ends the thread when it is dropped.
#[derive(Debug)]
pub(crate) struct Keeping {
    end: Arc<(Mutex<bool>, Condvar)>,
}

impl Keeping {
    /// Looks after a tree until this is dropped. The thread keeps nothing alive for longer than a look takes.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(tree: &Arc<BlockTree>) -> io::Result<Keeping> {
        let end = Arc::new((Mutex::new(false), Condvar::new()));
        let first = if tree.is_common() { Sweep::of_common() } else { Sweep::default() };
        let (tree, signal) = (Arc::downgrade(tree), Arc::clone(&end));
        std::thread::Builder::new().name("wirefs-keeping".into()).spawn(move || {
            let (begun, mut sweep, mut wait) = (Instant::now(), first, LOOK_EACH);
            while !has_ended(&signal, wait) {
                let Some(tree) = tree.upgrade() else { return };
                wait = look(&tree, begun.elapsed(), &mut sweep);
            }
        })?;
        Ok(Keeping { end })
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let (is_over, signal) = &*self.end;
        *is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        signal.notify_all();
    }
}

/// Waits, and tells whether it is over.
fn has_ended((is_over, signal): &(Mutex<bool>, Condvar), wait: Duration) -> bool {
    let guard = is_over.lock().unwrap_or_else(PoisonError::into_inner);
    *signal.wait_timeout_while(guard, wait, |is_over| !*is_over).unwrap_or_else(PoisonError::into_inner).0
}

/// Does what is to be done now; how long to wait for the next time.
fn look(tree: &BlockTree, now: Duration, sweep: &mut Sweep) -> Duration {
    let before = tree.figures();
    if before.backlog > 0 {
        tree.collect(COLLECT_STEPS);
        let after = tree.figures();
        if after.deregistered == before.deregistered && after.backlog == before.backlog {
            return LOOK_AGAIN;
        }
    }
    if let Some(from) = sweep.next(now, tree.figures().lost) {
        sweep.swept(now, tree.sweep(from));
    }
    LOOK_EACH
}

#[cfg(test)]
mod tests;
