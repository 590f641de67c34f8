use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The runs as anybody would count them.
fn counted(arrived: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let Some(&largest) = arrived.last() else {
        return Vec::new();
    };
    let floor = (largest + 1).saturating_sub(SPAN);
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &counter in arrived.iter().rev().filter(|counter| **counter >= floor) {
        match runs.last_mut() {
            Some((first, _)) if *first == counter + 1 => *first = counter,
            _ => runs.push((counter, counter)),
        }
    }
    runs.truncate(ACK_RUNS_MAX);
    runs
}

proptest! {
    #[test]
    fn runs_and_novelty_are_those_of_a_plain_set(
        start in 0u64..200,
        steps in proptest::collection::vec((0u8..12, 0u64..300), 1..400),
    ) {
        let (mut arrived, mut plain, mut at) = (Arrived::new(), BTreeSet::new(), start);
        for (kind, by) in steps {
            let counter = match kind {
                0..8 => at,
                8 => at + by,
                9 => at + by * 40,
                _ => at.saturating_sub(by * 20),
            };
            let largest = plain.last().copied();
            let expected = largest.is_none_or(|largest| counter > largest)
                || counter + SPAN > largest.unwrap_or(0) && !plain.contains(&counter);
            prop_assert_eq!(arrived.is_new(counter), expected);
            if expected {
                prop_assert_eq!(arrived.note(counter), counter == largest.map_or(0, |largest| largest + 1));
                plain.insert(counter);
                at = plain.last().map_or(0, |last| last + 1);
            }
            prop_assert_eq!(arrived.runs().collect::<Vec<_>>(), counted(&plain));
        }
    }
}

#[test]
fn a_copy_is_not_new_and_neither_is_what_is_too_old_to_know() {
    let mut arrived = Arrived::new();
    assert!(arrived.note(0));
    assert!(!arrived.is_new(0));
    assert!(!arrived.note(SPAN + 10));
    assert!(!arrived.is_new(10), "beyond the window");
    assert!(arrived.is_new(11));
    assert_eq!(arrived.runs().collect::<Vec<_>>(), [(SPAN + 10, SPAN + 10)]);
}
