//! The end of a mount, for the clients that wait for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::unsent::Unsent;

/// The maximum wait of the mount's process for clients that are told of its end.
const REPORT_MAX: Duration = Duration::from_secs(2);

/// The end of a mount, and the number of clients that are not told of it yet.
#[derive(Debug, Default)]
pub(super) struct End {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    unsent: Option<Unsent>,
    watchers: usize,
}

impl End {
    /// Begins to wait for the end.
    pub(super) fn watch(&self) -> Watcher<'_> {
        self.lock().watchers += 1;
        Watcher { end: self }
    }

    /// Sets the outcome. Waits until all watchers are gone, 2 s at most.
    pub(super) fn report(&self, unsent: &Unsent) {
        let until = Instant::now() + REPORT_MAX;
        let mut state = self.lock();
        state.unsent = Some(unsent.clone());
        self.changed.notify_all();
        while state.watchers > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.wait(state, left);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, timeout: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// A client that waits for the end. Dropped once the client is told.
pub(super) struct Watcher<'a> {
    end: &'a End,
}

impl Watcher<'_> {
    /// Waits for the outcome; `None` after the timeout.
    pub(super) fn wait(&self, timeout: Duration) -> Option<Unsent> {
        let until = Instant::now() + timeout;
        let mut state = self.end.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if state.unsent.is_some() || left.is_zero() {
                return state.unsent.clone();
            }
            state = self.end.wait(state, left);
        }
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.end.lock().watchers -= 1;
        self.end.changed.notify_all();
    }
}
