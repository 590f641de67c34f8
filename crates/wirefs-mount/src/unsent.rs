//! Changes of a mount that its server does not have, and how long an unmount waits for them.

use super::engine::Engine;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Changes that the server does not have when the mount has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// Changes in the journal that may not be on the server's disk; 0 without a journal.
    pub changes: u64,
    /// Their bytes; without a journal, the written bytes that the server has not acknowledged.
    pub bytes: u64,
    /// The directory of the journal, which keeps the changes; without one they end with the process.
    pub journal: Option<PathBuf>,
}

impl Unsent {
    /// Returns whether the server has everything.
    pub fn is_empty(&self) -> bool {
        self.changes == 0 && self.bytes == 0
    }
}

impl Engine {
    /// Returns the changes that the server does not have now.
    pub(super) fn unsent(&self) -> Unsent {
        let (answered, bytes) = {
            let state = self.lock();
            (state.client.answered_below(), state.client.snapshot().unacknowledged_bytes)
        };
        match &self.journal {
            Some(journal) => journal.unsent(answered),
            None => Unsent { changes: 0, bytes, journal: None },
        }
    }
}

/// The end of a wait for a server: it is put off each time that the server has answered a change.
#[derive(Debug)]
pub(super) struct Patience {
    span: Duration,
    answered: Option<u64>,
    until: Instant,
}

impl Patience {
    pub(super) fn new(span: Duration, now: Instant) -> Patience {
        Patience { span, answered: None, until: now + span }
    }

    /// Returns whether the wait has ended, given the number below which all changes are answered.
    pub(super) fn has_ended(&mut self, now: Instant, answered: u64) -> bool {
        if self.answered.replace(answered).is_some_and(|before| before != answered) {
            self.until = now + self.span;
        }
        now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-75
    #[test]
    fn wait_for_a_slow_server_goes_on_as_long_as_it_answers() {
        let (span, begin) = (Duration::from_secs(10), Instant::now());
        let mut patience = Patience::new(span, begin);
        for step in 0..20_u32 {
            assert!(!patience.has_ended(begin + span / 2 * step, u64::from(step)), "{step}");
        }
        let last = begin + span / 2 * 19;
        assert!(!patience.has_ended(last + span - Duration::from_millis(1), 19));
        assert!(patience.has_ended(last + span, 19));
    }

    #[test]
    fn wait_for_a_silent_server_ends_after_the_span() {
        let (span, begin) = (Duration::from_secs(10), Instant::now());
        let mut patience = Patience::new(span, begin);
        assert!(!patience.has_ended(begin + span / 2, 7));
        assert!(patience.has_ended(begin + span, 7));
    }
}
