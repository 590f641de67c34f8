//! What waits for the disk where the thread that has it may not, answers above all: the queue of the journal's thread.

use super::group::Point;
use crate::waiter::Waiter;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wirefs_client::call::{Answer, CallId};

/// An answer, and who waits for it.
pub(crate) type Late = (CallId, Waiter, Answer);

/// What the thread is to do.
#[derive(Default)]
pub(super) struct Work {
    /// As many as there are calls, at most.
    pub(super) answers: Vec<Late>,
    /// The disk must have all up to here for them.
    pub(super) point: Point,
    /// Changes below are forgotten once the disk has those of them that are kept elsewhere.
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

    pub(super) fn push(&self, point: Point, answers: Vec<Late>) {
        let mut state = self.lock();
        state.work.point = state.work.point.max(point);
        state.work.answers.extend(answers);
        self.filled.notify_one();
    }

    /// Changes below a number are to be forgotten.
    pub(super) fn forget(&self, below: u64) {
        let mut state = self.lock();
        state.work.forget = state.work.forget.max(Some(below));
        self.filled.notify_one();
    }

    /// Waits for work and takes all there is; `None` when stopped and none is left.
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

    /// Nothing more comes.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.filled.notify_all();
    }
}
