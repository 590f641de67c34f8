//! What the server tells the person who runs it.

use std::fmt::Arguments;
use std::io::{Write, stderr};

/// Writes one line. Where nobody listens any more the line is lost, and the server goes on.
pub(super) fn line(text: Arguments<'_>) {
    let _ = writeln!(stderr(), "wirefs: {text}");
}
