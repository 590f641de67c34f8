//! Each packet of a sender counts once.

/// How far back a packet may be overtaken and still count.
const WIDTH: u64 = 64;

/// Which packets of one sender have counted, by their numbers.
///
/// # Source
/// RFC 4303, appendix A2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplayWindow {
    /// One past the largest number that has counted.
    next: u64,
    /// Bit n: the number `next - 1 - n` has counted.
    seen: u64,
}

impl ReplayWindow {
    /// Whether this number counts now, and never again. The last number of all has none after it, and does not count.
    pub(crate) fn admit(&mut self, number: u64) -> bool {
        let Some(next) = number.checked_add(1) else { return false };
        if number >= self.next {
            let ahead = next - self.next;
            self.seen = if ahead >= WIDTH { 0 } else { self.seen << ahead };
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
    fn what_is_overtaken_counts_once_and_what_is_too_old_never() {
        let mut window = ReplayWindow::default();
        let admitted: Vec<bool> =
            [5, 5, 3, 3, 200, 137, 136, 5, 200].into_iter().map(|number| window.admit(number)).collect();
        assert_eq!(admitted, [true, false, true, false, true, true, false, false, false]);
    }

    /// Numbers that are near each other, at both ends.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..300, u64::MAX - 100..=u64::MAX]
    }

    #[test]
    fn the_last_number_of_all_never_counts() {
        let mut window = ReplayWindow::default();
        let admitted =
            [u64::MAX, u64::MAX - 1, u64::MAX, u64::MAX - 1, u64::MAX - 2].map(|n| window.admit(n));
        assert_eq!(admitted, [false, true, false, false, true]);
    }

    proptest! {
        #[test]
        fn no_number_counts_twice(numbers in proptest::collection::vec(number(), 0..200)) {
            let (mut window, mut counted) = (ReplayWindow::default(), BTreeSet::new());
            for number in numbers {
                if window.admit(number) {
                    prop_assert!(counted.insert(number));
                }
            }
        }
    }
}
