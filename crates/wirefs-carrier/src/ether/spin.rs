//! Whether to look again and again for a while before going to sleep.
//!
//! A wake-up costs ten times what a packet does, so where packets come in quick succession it is better not to sleep
//! between them. Where they do not, looking would only burn a processor that the peer may need: with both on one processor a
//! sleep is short because the peer runs meanwhile, and looking only keeps it from that.

use std::time::Duration;

/// So long it is worth looking. Longer than a round trip between two nodes that do not sleep.
pub(super) const SPIN: Duration = Duration::from_micros(50);
/// Looks in vain, one after the other, that are taken for chance.
const CHANCES: u32 = 2;
/// Waits without looking after one more look in vain; they double with each further one.
const PAUSE_MIN: u32 = 4;
/// How often they double: at most one look in so many waits is in vain.
const DOUBLINGS_MAX: u32 = 8;

/// What came of the last waits.
#[derive(Debug, Default)]
pub(super) struct Spin {
    /// One bit each: whether it was short.
    short: u8,
    /// Looks in vain since one was not.
    futile: u32,
    /// Waits left before it is looked again.
    pause: u32,
}

impl Spin {
    fn note(&mut self, is_short: bool) {
        self.short = self.short << 1 | u8::from(is_short);
    }

    /// Notes that looking found something.
    pub(super) fn found(&mut self) {
        self.note(true);
        self.futile = 0;
    }

    /// Notes a sleep, how long it took, and whether it was `looked` before, in vain.
    pub(super) fn slept(&mut self, slept: Duration, looked: bool) {
        self.note(slept < SPIN);
        if looked {
            self.futile = self.futile.saturating_add(1);
            let doublings = self.futile.checked_sub(CHANCES + 1).map(|count| count.min(DOUBLINGS_MAX));
            self.pause = doublings.map_or(0, |count| PAUSE_MIN << count);
        }
    }

    /// How long to look before the next sleep: only where most of the last waits were short, and looking was not in vain.
    pub(super) fn worth(&mut self) -> Duration {
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
    fn looking_is_worth_it_only_while_most_waits_are_short() {
        let mut spin = Spin::default();
        assert_eq!(spin.worth(), Duration::ZERO);
        (0..5).for_each(|_| spin.slept(SHORT, false));
        assert_eq!(spin.worth(), SPIN);
        (0..4).for_each(|_| spin.slept(Duration::from_millis(1), false));
        assert_eq!(spin.worth(), Duration::ZERO);
    }

    #[test]
    fn looking_in_vain_before_short_sleeps_becomes_seldom_and_once_found_is_forgotten() {
        let mut spin = Spin::default();
        let mut looks = 0;
        for _ in 0..10_000 {
            let looked = !spin.worth().is_zero();
            looks += u32::from(looked);
            spin.slept(SHORT, looked);
        }
        assert!((10..30).contains(&looks), "{looks}");
        while spin.worth().is_zero() {
            spin.slept(SHORT, false);
        }
        spin.found();
        assert_eq!(spin.worth(), SPIN);
    }
}
