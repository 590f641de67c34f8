//! Error messages for users: the problem, and the next step.

use std::fmt::Display;

use crate::terminal::note;

/// Returns an error with a problem and, below it, the next step.
pub(crate) fn failure(what: impl Display, next: impl Display) -> anyhow::Error {
    anyhow::anyhow!("{what}\n  next step: {next}")
}

/// Prints an error to standard error, with its causes in one line.
pub(crate) fn print_error(error: &anyhow::Error) {
    note!("wirefs: {error:#}");
}
