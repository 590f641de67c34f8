//! Readdirs whose answer waits until the kernel has dropped what it gathered of the directory's listing.
//!
//! Dropping takes the locks of pages, which a call holds while it copies from them, and none that a call holds while it waits for an
//! answer. So it waits for nothing but, where a program has its buffer in a file of this mount, a read of that. It has a thread of
//! its own: the queue of what else the kernel is to forget waits for calls as these.

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

/// Those that are to be dropped, in order. No more than the calls that wait.
#[derive(Default)]
pub(super) struct Dropping {
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Dropped>,
    is_stopped: bool,
}

impl Dropping {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, dropped: Dropped) {
        self.lock().waiting.push_back(dropped);
        self.filled.notify_one();
    }

    /// Waits for the next; `None` when stopped.
    pub(super) fn next(&self) -> Option<Dropped> {
        let mut queue = self.lock();
        while queue.waiting.is_empty() && !queue.is_stopped {
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.waiting.pop_front()
    }

    /// What waits then fails.
    pub(super) fn stop(&self) {
        let mut queue = self.lock();
        queue.is_stopped = true;
        queue.waiting.clear();
        self.filled.notify_all();
    }
}
