//! Messages to the operator.

use std::fmt::Arguments;
use std::io::{Write, stderr};

/// Writes one line to standard error. A write error is ignored.
pub(super) fn line(text: Arguments<'_>) {
    let _ = writeln!(stderr(), "wirefs: {text}");
}
