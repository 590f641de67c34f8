//! Interruptible waits of a mount's threads.

use super::engine::{Engine, State};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use wirefs_client::DataKey;

/// The reasons to end a wait early.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    lock: Mutex<()>,
    signal: Condvar,
    is_stopped: AtomicBool,
    /// The server is known to be up: it is dialed at once.
    dials_now: AtomicBool,
    /// The core has requested data connections.
    wants_data: AtomicBool,
}

impl Wakeups {
    /// Ends all present and later waits.
    pub(super) fn stop(&self) {
        self.wake(&self.is_stopped);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Sets a flag, and wakes the waiting threads.
    fn wake(&self, flag: &AtomicBool) {
        flag.store(true, Ordering::SeqCst);
        drop(self.lock.lock());
        self.signal.notify_all();
    }

    /// Waits for a while, or until the mount is stopped or the flag set. Returns whether it was set, and clears it.
    fn pause_unless_set(&self, span: Duration, flag: &AtomicBool) -> bool {
        self.pause(span, || flag.load(Ordering::SeqCst));
        flag.swap(false, Ordering::SeqCst)
    }

    fn pause(&self, span: Duration, is_over: impl Fn() -> bool) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _guard = self.signal.wait_timeout_while(guard, span, |()| !self.is_stopped() && !is_over());
    }
}

impl Engine {
    /// Waits for a while, or until the mount is stopped.
    pub(super) fn pause(&self, span: Duration) {
        self.wakeups.pause(span, || false);
    }

    /// Requests a data connection from the ticker thread.
    pub(super) fn want_data(&self, state: &mut State, key: DataKey) {
        state.wanted_data.push(key);
        self.wakeups.wake(&self.wakeups.wants_data);
    }

    /// Waits for a while, or until the mount is stopped or a data connection is requested. Returns whether one is.
    pub(super) fn pause_unless_wanted(&self, span: Duration) -> bool {
        self.wakeups.pause_unless_set(span, &self.wakeups.wants_data)
    }

    /// Wakes the thread that waits to dial, because the server is known to be up.
    pub(super) fn dial_now(&self) {
        self.wakeups.wake(&self.wakeups.dials_now);
    }

    /// Waits for a while, or until the mount is stopped or the server known to be up. Returns whether it is.
    pub(super) fn pause_unless_dialing(&self, span: Duration) -> bool {
        self.wakeups.pause_unless_set(span, &self.wakeups.dials_now)
    }
}
