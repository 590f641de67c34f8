//! Answers that wait for the disk where the thread that has them may not: the queue of the journal's thread.

use super::group::Point;
use crate::mount::engine::Waiting;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wirefs_client::call::{Answer, CallId};

/// An answer, and who waits for it.
pub(in crate::mount) type Late = (CallId, Waiting, Answer);

#[derive(Default)]
struct State {
    /// As many as there are calls, at most.
    answers: Vec<Late>,
    /// The disk must have all up to here for them.
    point: Point,
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
        state.point = state.point.max(point);
        state.answers.extend(answers);
        self.filled.notify_one();
    }

    /// Waits for answers and takes all there are; `None` when stopped and none is left.
    pub(super) fn next(&self) -> Option<(Point, Vec<Late>)> {
        let mut state = self.lock();
        while state.answers.is_empty() {
            if state.is_stopped {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some((state.point, std::mem::take(&mut state.answers)))
    }

    /// Nothing more comes.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.filled.notify_all();
    }
}
