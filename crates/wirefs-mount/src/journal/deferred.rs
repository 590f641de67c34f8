//! The queue of the journal's thread: answers, above all, that wait for the disk.

use super::group::Point;
use crate::waiter::Waiter;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wirefs_client::call::{Answer, CallId};

/// An answer and its waiter.
pub(crate) type DeferredAnswer = (CallId, Waiter, Answer);

/// The thread's work.
#[derive(Default)]
pub(super) struct Work {
    /// Bounded by the number of calls.
    pub(super) answers: Vec<DeferredAnswer>,
    /// The point up to which the answers need the journal to be durable.
    pub(super) point: Point,
    /// Changes below are removed once the disk has the rejected ones in the quarantine.
    pub(super) forget: Option<u64>,
}

#[derive(Default)]
struct State {
    work: Work,
    is_stopped: bool,
}

/// The queue.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, point: Point, answers: Vec<DeferredAnswer>) {
        let mut state = self.lock();
        state.work.point = state.work.point.max(point);
        state.work.answers.extend(answers);
        self.filled.notify_one();
    }

    /// Queues the removal of changes below a number.
    pub(super) fn forget(&self, below: u64) {
        let mut state = self.lock();
        state.work.forget = state.work.forget.max(Some(below));
        self.filled.notify_one();
    }

    /// Waits for work, and takes all of it; `None` when stopped and empty.
    pub(super) fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        while state.work.answers.is_empty() && state.work.forget.is_none() {
            if state.is_stopped {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let point = state.work.point;
        Some(std::mem::replace(&mut state.work, Work { point, ..Work::default() }))
    }

    /// Stops the queue after its pending work.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.filled.notify_all();
    }
}
