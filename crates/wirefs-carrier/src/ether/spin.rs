//! Whether to look again and again for a while before going to sleep.
//!
//! A wake-up costs ten times what a packet does, so where packets come in quick succession it is better not to sleep
//! between them. Where they do not, looking would only burn a processor that the peer may need.

use std::time::Duration;

/// So long it is worth looking. Longer than a round trip between two nodes that do not sleep.
pub(super) const SPIN: Duration = Duration::from_micros(50);

/// The last waits, one bit each: whether it was short.
#[derive(Debug, Default)]
pub(super) struct Spin {
    short: u8,
}

impl Spin {
    /// Notes how long it took until something came.
    pub(super) fn note(&mut self, waited: Duration) {
        self.short = self.short << 1 | u8::from(waited < SPIN);
    }

    /// How long to look before the next sleep: only where most of the last waits were short.
    pub(super) fn worth(&self) -> Duration {
        if self.short.count_ones() > u8::BITS / 2 { SPIN } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_is_worth_it_only_while_most_waits_are_short() {
        let mut spin = Spin::default();
        assert_eq!(spin.worth(), Duration::ZERO);
        (0..5).for_each(|_| spin.note(Duration::from_micros(8)));
        assert_eq!(spin.worth(), SPIN);
        (0..4).for_each(|_| spin.note(Duration::from_millis(1)));
        assert_eq!(spin.worth(), Duration::ZERO);
    }
}
