//! Threads of a mount that let time pass.

use super::engine::{Engine, State};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wirefs_client::DataKey;

impl Engine {
    /// Waits for a while, or until the mount is stopped.
    pub(super) fn pause(&self, span: Duration) {
        self.pause_unless(span, || false);
    }

    /// A data connection is wanted: whoever makes them does so now.
    pub(super) fn want_data(&self, state: &mut State, key: DataKey) {
        state.wanted_data.push(key);
        self.wake(&self.wants_data);
    }

    /// Waits for a while, or until the mount is stopped or data connections are wanted; whether they are.
    pub(super) fn pause_or_want(&self, span: Duration) -> bool {
        self.pause_or(span, &self.wants_data)
    }

    /// The server is known to be back: whoever waits to dial it does so now.
    pub(super) fn hurry(&self) {
        self.wake(&self.hurries);
    }

    /// Waits for a while, or until the mount is stopped or the server known to be back; whether it is.
    pub(super) fn pause_or_hurry(&self, span: Duration) -> bool {
        self.pause_or(span, &self.hurries)
    }

    /// Whoever waits for this need not wait any more.
    fn wake(&self, flag: &AtomicBool) {
        flag.store(true, Ordering::SeqCst);
        let (lock, signal) = &self.stop_signal;
        drop(lock.lock());
        signal.notify_all();
    }

    fn pause_or(&self, span: Duration, flag: &AtomicBool) -> bool {
        self.pause_unless(span, || flag.load(Ordering::SeqCst));
        flag.swap(false, Ordering::SeqCst)
    }

    fn pause_unless(&self, span: Duration, is_over: impl Fn() -> bool) {
        let (lock, signal) = &self.stop_signal;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = signal.wait_timeout_while(guard, span, |()| !self.is_stopped() && !is_over());
    }
}
