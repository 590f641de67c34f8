//! Queues of two threads: one invalidates the kernel's cache before a call is answered, the other waits for readers of
//! directories.
//!
//! The first thread is separate from the invalidation queue, whose items may wait for calls like these, and behind
//! which frames wait. Its calls are answered after the kernel has dropped attributes and pages of their file, or the
//! gathered listing of their directory. A call may hold the inode's lock in the kernel. The invalidation takes page
//! locks only. Reads and writes of those pages hold them, and no answer to these waits here. So there is no deadlock.
//!
//! The second thread waits until the readers of a directory have their answers. Nothing waits for it.

use super::waiter::Waiter;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wirefs_client::call::{Answer, CallId, Invalidate, TreeNodeId};

/// An invalidation, and the answer that follows it.
pub(super) struct DropBeforeAnswer {
    pub(super) what: Invalidate,
    pub(super) call: CallId,
    pub(super) waiting: Waiter,
    pub(super) answer: Answer,
}

/// A directory whose readers must finish, and the generation that the core is told then.
pub(super) struct AwaitReaders {
    pub(super) dir: TreeNodeId,
    pub(super) until: u64,
}

/// The queue of a thread. Its length is bounded by the calls that wait for it, or by the directories that the kernel
/// caches.
pub(super) struct TaskQueue<T>(Mutex<Queue<T>>, Condvar);

struct Queue<T> {
    waiting: VecDeque<T>,
    is_stopped: bool,
}

impl<T> Default for TaskQueue<T> {
    fn default() -> TaskQueue<T> {
        TaskQueue(Mutex::new(Queue { waiting: VecDeque::new(), is_stopped: false }), Condvar::new())
    }
}

impl<T> TaskQueue<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task. A stopped queue drops it, which fails its call.
    pub(super) fn push(&self, task: T) {
        let mut queue = self.lock();
        if !queue.is_stopped {
            queue.waiting.push_back(task);
            self.1.notify_one();
        }
    }

    /// Waits for the next task; `None` when stopped.
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
