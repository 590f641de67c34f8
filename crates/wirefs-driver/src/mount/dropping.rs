//! What is done for the listings that the kernel gathers, in two threads of their own: the queue of what else the kernel is to forget waits
//! for calls as these, and frames wait for that.
//!
//! A readdir whose answer waits until the kernel has dropped what it gathered of the directory's listing: dropping takes the locks of
//! pages, which a call holds while it copies from them, and none that a call holds while it waits for an answer. So it waits for nothing
//! but, where a program has its buffer in a file of this mount, a read of that.
//!
//! Directories whose readers are waited for: that takes as long as they wait for their answers, and nothing waits for it.

use super::engine::Waiting;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wirefs_client::call::{Answer, CallId, NodeId};

/// The listing of a directory, and who is answered when it was dropped.
pub(super) struct Dropped {
    pub(super) dir: NodeId,
    pub(super) call: CallId,
    pub(super) waiting: Waiting,
    pub(super) answer: Answer,
}

/// A directory whose readers are waited for, and what the core is told then.
pub(super) struct Awaited {
    pub(super) dir: NodeId,
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
