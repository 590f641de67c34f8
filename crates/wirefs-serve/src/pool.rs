//! Worker threads: as many as requests block at the moment, shared out among sessions.
//!
//! A session gets at most `session_workers_max` threads and at most what is still free of `workers_max`, but always
//! two, one of them for quick requests. So neither a session whose peer has stopped reading nor many of them keep
//! another from being served, and streams do not hold up what is quick.

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

/// How long a worker without work stays.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// A worker's stack, in bytes. A tree's work is not deep.
const STACK_BYTES: usize = 512 * 1024;

/// What a worker does.
pub(super) enum Work {
    /// Carries out a request.
    Task(Box<Task>),
    /// Tells the tree that a session is over, and then ends these connections, whose clients wait for that.
    End(SessionKey, Vec<Arc<Connection>>),
    /// Sends what a closed connection still holds.
    Close(Arc<Connection>),
}

/// The workers and what waits for them.
pub(super) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    settled: Condvar,
}

struct State {
    queues: Queues,
    threads: usize,
    /// Workers that sleep and have no wake-up coming.
    idle: usize,
    /// Wake-ups that idle workers have not taken yet.
    woken: usize,
    /// Workers that were started and have not looked yet.
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

    /// Whether another lock of this session may wait; counts it if so.
    pub(super) fn admit_waiter(&self, session: SessionKey) -> bool {
        self.lock().queues.admit_waiter(session)
    }

    /// Queues work, and wakes or starts a worker for it if one may run. `run` is the body of a new worker thread; it
    /// calls [`Pool::work`].
    pub(super) fn submit(&self, owner: Owner, rank: Rank, work: Work, run: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.queues.push(owner, rank, work);
        self.add_worker(state, run);
    }

    /// Wakes or starts one worker if more work may run than workers are on their way.
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

    /// Takes work until there is none for a while.
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

    /// Waits until nothing is queued or running; false when that takes longer than `patience`.
    pub(super) fn settle(&self, patience: Duration) -> bool {
        let mut state = self.lock();
        state.settling += 1;
        let busy = |state: &mut State| !state.queues.is_empty();
        let waited = self.settled.wait_timeout_while(state, patience, busy);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.settling -= 1;
        state.queues.is_empty()
    }

    /// Lets the workers go once they have nothing to do.
    pub(super) fn stop(&self) {
        self.lock().stopping = true;
        self.work.notify_all();
    }

    /// Threads at present.
    pub(super) fn threads(&self) -> usize {
        self.lock().threads
    }
}
