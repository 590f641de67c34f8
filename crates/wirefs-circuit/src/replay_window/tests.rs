use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The ranges by a naive count.
fn counted(arrived: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let Some(&largest) = arrived.last() else {
        return Vec::new();
    };
    let floor = (largest + 1).saturating_sub(SPAN);
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &packet_number in arrived.iter().rev().filter(|packet_number| **packet_number >= floor) {
        match ranges.last_mut() {
            Some((first, _)) if *first == packet_number + 1 => *first = packet_number,
            _ => ranges.push((packet_number, packet_number)),
        }
    }
    ranges.truncate(ACK_RANGES_MAX);
    ranges
}

proptest! {
    #[test]
    fn ack_ranges_and_novelty_match_a_set(
        start in 0u64..200,
        steps in proptest::collection::vec((0u8..12, 0u64..300), 1..400),
    ) {
        let (mut window, mut plain, mut at) = (ReplayWindow::new(), BTreeSet::new(), start);
        for (kind, by) in steps {
            let packet_number = match kind {
                0..8 => at,
                8 => at + by,
                9 => at + by * 40,
                _ => at.saturating_sub(by * 20),
            };
            let largest = plain.last().copied();
            let expected = largest.is_none_or(|largest| packet_number > largest)
                || packet_number + SPAN > largest.unwrap_or(0) && !plain.contains(&packet_number);
            prop_assert_eq!(window.is_new(packet_number), expected);
            if expected {
                prop_assert_eq!(window.record(packet_number), packet_number == largest.map_or(0, |largest| largest + 1));
                plain.insert(packet_number);
                at = plain.last().map_or(0, |last| last + 1);
            }
            prop_assert_eq!(window.ranges().collect::<Vec<_>>(), counted(&plain));
        }
    }
}

#[test]
fn duplicates_and_packets_older_than_the_window_are_not_new() {
    let mut window = ReplayWindow::new();
    assert!(window.record(0));
    assert!(!window.is_new(0));
    assert!(!window.record(SPAN + 10));
    assert!(!window.is_new(10), "beyond the window");
    assert!(window.is_new(11));
    assert_eq!(window.ranges().collect::<Vec<_>>(), [(SPAN + 10, SPAN + 10)]);
}
