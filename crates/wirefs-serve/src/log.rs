//! Messages to the operator.

use std::fmt::Arguments;
use std::io::{Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use wirefs_carrier::printable;

/// The number of lines about peers in one span.
const PEER_LINES_MAX: u32 = 20;
/// The span.
const PEER_LINES_SPAN: Duration = Duration::from_secs(10);

/// Writes one line to standard error, with the control characters of peers escaped. A write error is ignored.
pub(super) fn line(text: Arguments<'_>) {
    let _ = writeln!(stderr(), "wirefs: {}", printable(text.to_string().as_bytes()));
}

/// Writes a line about something that a peer caused. Peers could fill the disk with lines, so most of a flood are only
/// counted.
pub(super) fn peer(text: Arguments<'_>) {
    static LIMIT: Mutex<LineLimit> = Mutex::new(LineLimit { span: None, written: 0, left_out: 0 });
    let allowed = LIMIT.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
    if let Some(left_out) = allowed {
        if left_out > 0 {
            line(format_args!("{left_out} more lines about connections were left out"));
        }
        line(text);
    }
}

/// A bound on lines per span.
struct LineLimit {
    span: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl LineLimit {
    /// Asks for a line. Returns the number of lines left out before it; `None`: leave it out.
    fn take(&mut self, now: Instant) -> Option<u64> {
        if self.span.is_none_or(|since| now.duration_since(since) >= PEER_LINES_SPAN) {
            (self.span, self.written) = (Some(now), 0);
        }
        if self.written >= PEER_LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-180
    #[test]
    fn flood_of_peers_writes_few_lines_and_is_counted() {
        let mut limit = LineLimit { span: None, written: 0, left_out: 0 };
        let now = Instant::now();
        let written = (0..1000).filter(|_| limit.take(now).is_some()).count();
        assert_eq!(written, PEER_LINES_MAX as usize);
        assert_eq!(limit.take(now + PEER_LINES_SPAN), Some(1000 - u64::from(PEER_LINES_MAX)));
        assert_eq!(limit.take(now + PEER_LINES_SPAN), Some(0));
    }
}
