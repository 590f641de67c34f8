//! A lost connection, in the log and in the status.

use super::engine::Shared;
use super::handshake::ConnectError;
use crate::log;
use std::time::Instant;

/// A connection that is lost and not restored yet.
pub(super) struct Lost {
    since: Instant,
}

impl Lost {
    /// Logs the loss, unless the mount has ended it.
    pub(super) fn begin(engine: &Shared, why: &str) -> Lost {
        if !engine.is_stopped() {
            let peer = engine.lock().peer.address.clone();
            log::line(format_args!("lost the connection to {peer}: {}", in_one_line(why)));
        }
        Lost { since: Instant::now() }
    }

    /// Notes why the server could not be dialed, and logs it when the reason is a new one.
    pub(super) fn failed(&self, engine: &Shared, error: &ConnectError) {
        let text = in_one_line(&error.to_string());
        let before = engine.lock().dial_error.replace(text.clone());
        if before.as_ref() != Some(&text) && !engine.is_stopped() {
            log::line(format_args!("cannot connect again: {text}"));
        }
    }

    /// Logs that the connection is restored.
    pub(super) fn end(self, engine: &Shared) {
        let peer = {
            let mut state = engine.lock();
            state.dial_error = None;
            state.peer.address.clone()
        };
        let seconds = self.since.elapsed().as_secs_f64();
        log::line(format_args!("connected to {peer} again after {seconds:.1} s"));
    }
}

/// Joins the lines of a message.
fn in_one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
