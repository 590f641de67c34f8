//! Threads of a mount that let time pass.

use super::engine::{Engine, State};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wirefs_client::DataKey;

impl Engine {
    /// Waits for a while, or until the mount is stopped.
    pub(super) fn pause(&self, span: Duration) {
        let (lock, signal) = &self.stop_signal;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = signal.wait_timeout_while(guard, span, |()| !self.is_stopped());
    }

    /// A data connection is wanted: whoever makes them does so now.
    pub(super) fn want_data(&self, state: &mut State, key: DataKey) {
        state.wanted_data.push(key);
        self.wants_data.store(true, Ordering::SeqCst);
        let (lock, signal) = &self.stop_signal;
        drop(lock.lock());
        signal.notify_all();
    }

    /// Waits for a while, or until the mount is stopped or data connections are wanted; whether they are.
    pub(super) fn pause_or_want(&self, span: Duration) -> bool {
        let (lock, signal) = &self.stop_signal;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |_: &mut ()| !self.is_stopped() && !self.wants_data.load(Ordering::SeqCst);
        let _ = signal.wait_timeout_while(guard, span, waits);
        self.wants_data.swap(false, Ordering::SeqCst)
    }

    /// The server is known to be back: whoever waits to dial it does so now.
    pub(super) fn hurry(&self) {
        self.hurries.store(true, Ordering::SeqCst);
        let (lock, signal) = &self.stop_signal;
        drop(lock.lock());
        signal.notify_all();
    }

    /// Waits for a while, or until the mount is stopped or the server known to be back; whether it is.
    pub(super) fn pause_or_hurry(&self, span: Duration) -> bool {
        let (lock, signal) = &self.stop_signal;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |_: &mut ()| !self.is_stopped() && !self.hurries.load(Ordering::SeqCst);
        let _ = signal.wait_timeout_while(guard, span, waits);
        self.hurries.swap(false, Ordering::SeqCst)
    }
}
