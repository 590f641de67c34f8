use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn byte_ranges_match_a_set(
        steps in proptest::collection::vec((any::<bool>(), 0u64..60, 0u64..20), 1..60),
    ) {
        let (mut ranges, mut plain) = (ByteRanges::default(), BTreeSet::new());
        for (add, start, bytes) in steps {
            let span = start..start + bytes;
            if add {
                ranges.insert(span.start, span.end);
                plain.extend(span.clone());
            } else {
                ranges.remove(span.start, span.end);
                plain.retain(|byte| !span.contains(byte));
            }
            let held: BTreeSet<u64> = ranges.0.iter().flat_map(|(start, end)| *start..*end).collect();
            prop_assert_eq!(&held, &plain);
            let ends: Vec<u64> = ranges.0.iter().flat_map(|(start, end)| [*start, *end]).collect();
            prop_assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
            let overlap: BTreeSet<u64> =
                ranges.overlaps(20, 40).iter().flat_map(|(start, end)| *start..*end).collect();
            prop_assert_eq!(overlap, plain.range(20..40).copied().collect());
        }
    }
}

#[test]
fn empty_and_reversed_ranges_are_ignored() {
    let mut ranges = ByteRanges::default();
    ranges.insert(0, 9);
    ranges.insert(30, 20);
    ranges.remove(5, 5);
    ranges.remove(7, 3);
    assert_eq!(ranges.overlaps(7, 3), []);
    assert_eq!(ranges.overlaps(0, 99), [(0, 9)]);
}
