//! Adaptive spinning: whether to busy-poll before going to sleep.
//!
//! A wake-up costs ten times as much as a packet, so with packets in quick succession it is better not to sleep between
//! them. Otherwise busy-polling only uses a processor that the peer may need: if both share a processor, sleeps are
//! short because the peer runs meanwhile, and polling only delays it.

use std::time::Duration;

/// The time of one busy-poll: longer than a round trip between two nodes that do not sleep.
pub(super) const SPIN: Duration = Duration::from_micros(50);
/// Futile busy-polls in a row that are ignored.
const FUTILE_IGNORED: u32 = 2;
/// Waits without busy-polling after one more futile one; doubled with each further one.
const PAUSE_MIN: u32 = 4;
/// The maximum number of doublings; limits the share of futile busy-polls.
const DOUBLINGS_MAX: u32 = 8;

/// The outcome of the last waits.
#[derive(Debug, Default)]
pub(super) struct AdaptiveSpin {
    /// One bit each: the wait was short.
    short: u8,
    /// Futile busy-polls since a successful one.
    futile: u32,
    /// Waits left before the next busy-poll.
    pause: u32,
}

impl AdaptiveSpin {
    fn note(&mut self, is_short: bool) {
        self.short = self.short << 1 | u8::from(is_short);
    }

    /// Records that a busy-poll found work.
    pub(super) fn record_hit(&mut self) {
        self.note(true);
        self.futile = 0;
    }

    /// Records a sleep and its duration; `polled`: a futile busy-poll came before it.
    pub(super) fn record_sleep(&mut self, record_sleep: Duration, polled: bool) {
        self.note(record_sleep < SPIN);
        if polled {
            self.futile = self.futile.saturating_add(1);
            let doublings = self.futile.checked_sub(FUTILE_IGNORED + 1).map(|count| count.min(DOUBLINGS_MAX));
            self.pause = doublings.map_or(0, |count| PAUSE_MIN << count);
        }
    }

    /// Returns how long to busy-poll before the next sleep: only if most of the last waits were short, and polling was
    /// not futile.
    pub(super) fn spin_time(&mut self) -> Duration {
        if self.short.count_ones() <= u8::BITS / 2 {
            return Duration::ZERO;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return Duration::ZERO;
        }
        SPIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(8);

    #[test]
    fn spins_only_while_most_waits_are_short() {
        let mut spin = AdaptiveSpin::default();
        assert_eq!(spin.spin_time(), Duration::ZERO);
        (0..5).for_each(|_| spin.record_sleep(SHORT, false));
        assert_eq!(spin.spin_time(), SPIN);
        (0..4).for_each(|_| spin.record_sleep(Duration::from_millis(1), false));
        assert_eq!(spin.spin_time(), Duration::ZERO);
    }

    #[test]
    fn futile_spins_become_rare_and_a_hit_resets_them() {
        let mut spin = AdaptiveSpin::default();
        let mut polls = 0;
        for _ in 0..10_000 {
            let polled = !spin.spin_time().is_zero();
            polls += u32::from(polled);
            spin.record_sleep(SHORT, polled);
        }
        assert!((10..30).contains(&polls), "{polls}");
        while spin.spin_time().is_zero() {
            spin.record_sleep(SHORT, false);
        }
        spin.record_hit();
        assert_eq!(spin.spin_time(), SPIN);
    }
}
