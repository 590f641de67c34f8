//! Replay protection: each packet of a sender is accepted once.

/// Packet numbers covered: reordered packets further back are rejected.
const WIDTH: u64 = 64;

/// Accepted packet numbers of one sender.
///
/// # Source
/// RFC 4303, appendix A2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplayWindow {
    /// The largest accepted number plus one.
    next: u64,
    /// Bit n: `next - 1 - n` was accepted.
    seen: u64,
}

impl ReplayWindow {
    /// Accepts a number once. The largest 64-bit number is never accepted, since `next` could not represent it.
    pub(crate) fn admit(&mut self, number: u64) -> bool {
        let Some(next) = number.checked_add(1) else { return false };
        if number >= self.next {
            let shift = next - self.next;
            self.seen = if shift >= WIDTH { 0 } else { self.seen << shift };
            self.seen |= 1;
            self.next = next;
            return true;
        }
        let back = self.next - 1 - number;
        let bit = if back < WIDTH { 1 << back } else { 0 };
        let is_new = bit != 0 && self.seen & bit == 0;
        self.seen |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn reordered_number_is_accepted_once_and_number_outside_the_window_never() {
        let mut window = ReplayWindow::default();
        let admitted: Vec<bool> =
            [5, 5, 3, 3, 200, 137, 136, 5, 200].into_iter().map(|number| window.admit(number)).collect();
        assert_eq!(admitted, [true, false, true, false, true, true, false, false, false]);
    }

    /// Numbers close to each other, at both ends.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..300, u64::MAX - 100..=u64::MAX]
    }

    #[test]
    fn largest_number_is_never_accepted() {
        let mut window = ReplayWindow::default();
        let admitted =
            [u64::MAX, u64::MAX - 1, u64::MAX, u64::MAX - 1, u64::MAX - 2].map(|n| window.admit(n));
        assert_eq!(admitted, [false, true, false, false, true]);
    }

    proptest! {
        #[test]
        fn no_number_is_accepted_twice(numbers in proptest::collection::vec(number(), 0..200)) {
            let (mut window, mut accepted) = (ReplayWindow::default(), BTreeSet::new());
            for number in numbers {
                if window.admit(number) {
                    prop_assert!(accepted.insert(number));
                }
            }
        }
    }
}
