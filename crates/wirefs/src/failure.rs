//! How a failure is told to the person: what happened, and the next step.

use std::fmt::Display;

use crate::terminal::note;

/// A failure that says what happened, and below it what to do.
pub(crate) fn failure(what: impl Display, next: impl Display) -> anyhow::Error {
    anyhow::anyhow!("{what}\n  next step: {next}")
}

/// Prints a failure to standard error, with its causes in one line.
pub(crate) fn tell(error: &anyhow::Error) {
    note!("wirefs: {error:#}");
}
