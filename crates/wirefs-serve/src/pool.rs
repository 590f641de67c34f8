//! Worker threads: as many as there are blocked requests, shared among the sessions.
//!
//! A session gets at most `session_workers_max` threads, and at most the free part of `workers_max`, but always two,
//! one of them for quick requests. So a session whose peer has stopped reading does not block other sessions, and
//! streams do not delay quick requests.

mod queue;
#[cfg(test)]
mod tests;

use super::connection::Connection;
use super::core::Task;
use super::log;
use super::options::ServeOptions;
use queue::Queues;
pub(super) use queue::{Owner, Rank};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wirefs_server::SessionKey;

/// The time after which an idle worker ends.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// A worker's stack, in bytes. Trees do not recurse deeply.
const STACK_BYTES: usize = 512 * 1024;

/// The work of a worker.
pub(super) enum Work {
    /// Executes a request.
    Task(Box<Task>),
    /// Tells the tree that a session has ended, and then closes these connections, whose clients wait for it.
    End(SessionKey, Vec<Arc<Connection>>),
    /// Sends the queued frames of a closed connection.
    Close(Arc<Connection>, bool),
}

/// The workers and their queues.
pub(super) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    settled: Condvar,
}

struct State {
    queues: Queues,
    threads: usize,
    /// Workers that sleep without a pending wake-up.
    idle: usize,
    /// Wake-ups that no worker has taken yet.
    woken: usize,
    /// Workers that were started and have not taken work yet.
    starting: usize,
    /// Threads in [`Pool::settle`].
    settling: usize,
    stopping: bool,
}

impl Pool {
    pub(super) fn new(options: &ServeOptions) -> Pool {
        Pool {
            state: Mutex::new(State {
                queues: Queues::new(options),
                threads: 0,
                idle: 0,
                woken: 0,
                starting: 0,
                settling: 0,
                stopping: false,
            }),
            work: Condvar::new(),
            settled: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a waiting lock of a session; `false` if there are too many.
    pub(super) fn admit_waiter(&self, session: SessionKey) -> bool {
        self.lock().queues.admit_waiter(session)
    }

    /// Queues work, and wakes or starts a worker if the work may run. `run` is the body of a new worker thread; it
    /// calls [`Pool::work`].
    pub(super) fn submit(&self, owner: Owner, rank: Rank, work: Work, run: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.queues.push(owner, rank, work);
        self.add_worker(state, run);
    }

    /// Wakes or starts one worker if there is more runnable work than workers about to take some.
    fn add_worker(&self, mut state: MutexGuard<'_, State>, run: impl FnOnce() + Send + 'static) {
        if state.queues.ready() <= state.woken + state.starting {
            return;
        }
        if state.idle > 0 {
            state.idle -= 1;
            state.woken += 1;
            drop(state);
            self.work.notify_one();
            return;
        }
        state.threads += 1;
        state.starting += 1;
        drop(state);
        let builder = std::thread::Builder::new().name("wirefs-worker".into()).stack_size(STACK_BYTES);
        if let Err(error) = builder.spawn(run) {
            // The present workers, or the next that can be started, take the queued work.
            let mut state = self.lock();
            state.threads -= 1;
            state.starting -= 1;
            log::line(format_args!("no thread for a request: {error}"));
        }
    }

    /// Runs work until there is none for a while.
    ///
    /// The end of one piece of work can make two runnable: one of its own session, and one of a session whose share
    /// grew. This worker takes one of them and may block in it, so another worker is added for the other.
    pub(super) fn work<R: FnOnce() + Send + 'static>(
        &self,
        another: impl Fn() -> R,
        mut run: impl FnMut(Work),
    ) {
        let mut state = self.lock();
        state.starting = state.starting.saturating_sub(1);
        loop {
            if let Some((owner, rank, work)) = state.queues.take() {
                self.add_worker(state, another());
                run(work);
                state = self.lock();
                state.queues.done(owner, rank);
                if state.settling > 0 && state.queues.is_empty() {
                    self.settled.notify_all();
                }
                continue;
            }
            if state.stopping {
                break;
            }
            state.idle += 1;
            let sleeps = |state: &mut State| state.woken == 0 && !state.stopping;
            let waited = self.work.wait_timeout_while(state, IDLE_MAX, sleeps);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.woken > 0 {
                state.woken -= 1;
            } else {
                state.idle -= 1;
                break;
            }
        }
        state.threads -= 1;
    }

    /// Waits until nothing is queued or running; `false` if that takes longer than `patience`.
    pub(super) fn settle(&self, patience: Duration) -> bool {
        let mut state = self.lock();
        state.settling += 1;
        let busy = |state: &mut State| !state.queues.is_empty();
        let waited = self.settled.wait_timeout_while(state, patience, busy);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.settling -= 1;
        state.queues.is_empty()
    }

    /// Ends the workers once they are idle.
    pub(super) fn stop(&self) {
        self.lock().stopping = true;
        self.work.notify_all();
    }

    /// The number of threads.
    pub(super) fn threads(&self) -> usize {
        self.lock().threads
    }
}
