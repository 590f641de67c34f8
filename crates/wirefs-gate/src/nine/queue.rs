//! Requests of one connection that wait for a thread.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wirefs_ninep::NineJob;

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<NineJob>,
    /// Threads that wait for a job.
    idle: usize,
    threads: usize,
    is_closed: bool,
}

/// The queue. It is bounded by the requests that a conversation admits.
#[derive(Debug, Default)]
pub(super) struct JobQueue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

impl JobQueue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job. Returns true if another thread should be started, which counts as started.
    pub(super) fn push(&self, job: NineJob, threads_max: usize) -> bool {
        let mut waiting = self.lock();
        waiting.jobs.push_back(job);
        let is_short = waiting.jobs.len() > waiting.idle && waiting.threads < threads_max;
        waiting.threads += usize::from(is_short);
        self.filled.notify_one();
        is_short
    }

    /// Waits for a job; `None` when the connection is closed.
    pub(super) fn next(&self) -> Option<NineJob> {
        let mut waiting = self.lock();
        loop {
            if waiting.is_closed {
                return None;
            }
            if let Some(job) = waiting.jobs.pop_front() {
                return Some(job);
            }
            waiting.idle += 1;
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.idle -= 1;
        }
    }

    /// No job is executed any more, but for those that a thread has.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }
}
