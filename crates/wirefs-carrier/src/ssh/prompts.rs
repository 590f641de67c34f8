//! Questions of ssh, for a mount in the background: passed on to a command that a user runs at a terminal.
//!
//! ssh asks through a program (`SSH_ASKPASS`), which talks with the user's command over a socket. So no answer passes
//! through the mount's process.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::closer::Closer;

/// The environment variable with the socket's path, for the program that passes questions on.
pub const PROMPTS_VARIABLE: &str = "WIREFS_PROMPTS";
/// ssh before 8.4 asks through a program only if there is a display.
const DISPLAY_VARIABLE: &str = "DISPLAY";

/// The program that passes questions on, and the socket at which they are answered.
#[derive(Clone, Debug)]
pub struct PromptRoute {
    /// The program; its argument is the question, and its output the answer.
    pub program: PathBuf,
    /// The socket, in [`PROMPTS_VARIABLE`] for the program.
    pub socket: PathBuf,
}

impl PromptRoute {
    /// Lets ssh ask through the program, whether or not it has a terminal.
    pub(super) fn apply(&self, command: &mut Command) {
        let variables: [(&str, OsString); 3] = [
            ("SSH_ASKPASS", self.program.clone().into()),
            ("SSH_ASKPASS_REQUIRE", "force".into()),
            (PROMPTS_VARIABLE, self.socket.clone().into()),
        ];
        command.envs(variables);
        if std::env::var_os(DISPLAY_VARIABLE).is_none() {
            command.env(DISPLAY_VARIABLE, "none");
        }
    }
}

/// Users who wait to answer the questions of the next dial. The last one counts.
#[derive(Default)]
pub struct UserPrompts {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of the last request.
    latest: u64,
    /// Its route, until it is dialed.
    waiting: Option<PromptRoute>,
    /// The connection that is dialed for it.
    closer: Option<Closer>,
    outcome: Option<Result<(), String>>,
}

impl UserPrompts {
    /// Lets the next dial ask. Cancels an earlier request.
    pub fn request(&self, route: PromptRoute) -> PromptedDial<'_> {
        let mut state = self.lock();
        cancel(&mut state);
        state.latest += 1;
        state.waiting = Some(route);
        PromptedDial { prompts: self, number: state.latest }
    }

    /// Takes the request that waits for a dial.
    pub(super) fn take(&self) -> Option<PromptAttempt<'_>> {
        let mut state = self.lock();
        let route = state.waiting.take()?;
        Some(PromptAttempt { prompts: self, number: state.latest, route })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cancel(state: &mut State) {
    state.waiting = None;
    state.outcome = None;
    if let Some(closer) = state.closer.take() {
        closer.close();
    }
}

/// A user's request for a dial. Dropping it ends the dial.
pub struct PromptedDial<'a> {
    prompts: &'a UserPrompts,
    number: u64,
}

impl PromptedDial<'_> {
    /// Waits for the outcome of the dial, at most `timeout`; `None`: there is none yet.
    pub fn wait(&self, timeout: Duration) -> Option<Result<(), String>> {
        let is_open = |state: &mut State| state.latest == self.number && state.outcome.is_none();
        let waited = self.prompts.changed.wait_timeout_while(self.prompts.lock(), timeout, is_open);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.latest != self.number {
            return Some(Err("another `wirefs reconnect` took its place".to_owned()));
        }
        state.outcome.clone()
    }
}

impl Drop for PromptedDial<'_> {
    fn drop(&mut self) {
        let mut state = self.prompts.lock();
        if state.latest == self.number {
            cancel(&mut state);
            state.latest += 1;
        }
    }
}

/// A dial for a request.
pub(super) struct PromptAttempt<'a> {
    prompts: &'a UserPrompts,
    number: u64,
    pub(super) route: PromptRoute,
}

impl PromptAttempt<'_> {
    /// Names the connection that ends with the request.
    pub(super) fn attach(&self, closer: &Closer) {
        let mut state = self.prompts.lock();
        match state.latest == self.number {
            true => state.closer = Some(closer.clone()),
            false => closer.close(),
        }
    }

    /// Returns whether the request was cancelled.
    pub(super) fn is_over(&self) -> bool {
        self.prompts.lock().latest != self.number
    }

    /// Reports the outcome. A connection then stays although the request ends.
    pub(super) fn finish(self, outcome: Result<(), String>) {
        let mut state = self.prompts.lock();
        if state.latest == self.number {
            state.closer = None;
            state.outcome = Some(outcome);
            drop(state);
            self.prompts.changed.notify_all();
        }
    }
}

impl std::fmt::Debug for UserPrompts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserPrompts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn route(name: &str) -> PromptRoute {
        PromptRoute { program: "wirefs".into(), socket: name.into() }
    }

    fn counted() -> (Closer, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let closer = Closer::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        (closer, count)
    }

    #[test]
    fn dropped_request_closes_its_dial_and_leaves_none() {
        let prompts = UserPrompts::default();
        let (closer, closed) = counted();
        let request = prompts.request(route("first"));
        let attempt = prompts.take().unwrap();
        assert!(prompts.take().is_none());
        attempt.attach(&closer);
        assert_eq!(request.wait(Duration::ZERO), None);
        drop(request);
        assert!(attempt.is_over() && closed.load(Ordering::SeqCst) == 1);
        attempt.finish(Ok(()));
        drop(prompts.request(route("never dialed")));
        assert!(prompts.take().is_none());
    }

    #[test]
    fn later_request_takes_the_place_of_an_earlier_one() {
        let prompts = UserPrompts::default();
        let (closer, closed) = counted();
        let first = prompts.request(route("first"));
        let attempt = prompts.take().unwrap();
        let second = prompts.request(route("second"));
        attempt.attach(&closer);
        assert_eq!(closed.load(Ordering::SeqCst), 1);
        assert!(first.wait(Duration::ZERO).unwrap().is_err());
        attempt.finish(Ok(()));
        drop(first);
        assert_eq!(second.wait(Duration::ZERO), None);
        assert_eq!(prompts.take().unwrap().route.socket, PathBuf::from("second"));
    }

    #[test]
    fn successful_dial_outlives_its_request() {
        let prompts = UserPrompts::default();
        let (closer, closed) = counted();
        let request = prompts.request(route("first"));
        let attempt = prompts.take().unwrap();
        attempt.attach(&closer);
        attempt.finish(Ok(()));
        assert_eq!(request.wait(Duration::ZERO), Some(Ok(())));
        drop(request);
        assert_eq!(closed.load(Ordering::SeqCst), 0);
    }
}
