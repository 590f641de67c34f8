//! Pages and attributes that the kernel drops before a call is answered, and directories whose readers are waited for, in two threads: the queue
//! of what else the kernel is to forget waits for calls as these, and frames wait for that.
//!
//! A call whose answer waits until the kernel has dropped attributes and pages of the file that the call is about, or, for a readdir, what
//! it gathered of the directory's listing. Such a call may hold the file's or the directory's own lock in the kernel. Dropping takes the
//! locks of pages, which calls hold that read or write back these pages or copy from them, and no lock that a call of another kind holds
//! while it waits for an answer. So it waits for reads and for writes of pages alone, and these wait for no answer that waits here.
//!
//! Directories whose readers are waited for: that takes as long as they wait for their answers, and nothing waits for it.

use super::engine::Waiting;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wirefs_client::call::{Answer, CallId, Invalidate, TreeNodeId};

/// Pages, attributes or a listing that the kernel is to drop, and the call that is answered then.
pub(super) struct Dropped {
    pub(super) what: Invalidate,
    pub(super) call: CallId,
    pub(super) waiting: Waiting,
    pub(super) answer: Answer,
}

/// A directory whose readers are waited for, and what the core is told then.
pub(super) struct Awaited {
    pub(super) dir: TreeNodeId,
    pub(super) until: u64,
}

/// What a thread does in order. There are no more than calls that wait for it, or directories that the kernel knows.
pub(super) struct Errands<T>(Mutex<Queue<T>>, Condvar);

struct Queue<T> {
    waiting: VecDeque<T>,
    is_stopped: bool,
}

impl<T> Default for Errands<T> {
    fn default() -> Errands<T> {
        Errands(Mutex::new(Queue { waiting: VecDeque::new(), is_stopped: false }), Condvar::new())
    }
}

impl<T> Errands<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What comes when it is stopped is let go of, as is what waits then: a call fails by that.
    pub(super) fn push(&self, errand: T) {
        let mut queue = self.lock();
        if !queue.is_stopped {
            queue.waiting.push_back(errand);
            self.1.notify_one();
        }
    }

    /// Waits for the next; `None` when stopped.
    pub(super) fn next(&self) -> Option<T> {
        let mut queue = self.lock();
        while queue.waiting.is_empty() && !queue.is_stopped {
            queue = self.1.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.waiting.pop_front()
    }

    pub(super) fn stop(&self) {
        let waiting = {
            let mut queue = self.lock();
            queue.is_stopped = true;
            self.1.notify_all();
            std::mem::take(&mut queue.waiting)
        };
        drop(waiting);
    }
}

#[cfg(test)]
mod tests;
