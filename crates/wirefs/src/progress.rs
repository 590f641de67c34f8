//! A progress line on standard error.

use std::io::{IsTerminal, Write};

use crate::terminal::note;

/// A line that shows how far a wait is: rewritten in place on a terminal, and printed once elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    is_shown: bool,
}

impl Progress {
    /// Shows a text.
    pub(crate) fn show(&mut self, text: &str) {
        if std::io::stderr().is_terminal() {
            // Fails if the terminal is closed; then no progress is needed.
            let _gone = write!(std::io::stderr(), "\r{text}\x1b[K");
        } else if !self.is_shown {
            note!("wirefs: {text}");
        }
        self.is_shown = true;
    }

    /// Removes the line from a terminal.
    pub(crate) fn clear(&mut self) {
        if self.is_shown && std::io::stderr().is_terminal() {
            // As above.
            let _gone = write!(std::io::stderr(), "\r\x1b[K");
        }
        self.is_shown = false;
    }
}
