use super::*;

/// Tries sizes on a path that carries `true_bytes`; returns what it found and how many packets that took.
fn found(most: usize, true_bytes: usize) -> (usize, usize) {
    let (mut sizing, mut probes) = (Sizing::new(most), 0);
    while let Some(bytes) = sizing.probe(Time(0)) {
        assert!(bytes > PACKET_BYTES_PLAIN && bytes <= most);
        sizing.sent();
        assert_eq!(sizing.probe(Time(0)), None, "one at a time");
        sizing.learn(Time(0), bytes, bytes <= true_bytes);
        probes += 1;
    }
    (sizing.bytes(), probes)
}

#[test]
fn size_is_found_by_what_arrives() {
    assert_eq!(found(9_000, 9_000), (9_000, 1));
    assert_eq!(found(9_000, 4_500), (4_000, 7));
    assert_eq!(found(9_000, 1_500), (1_500, 12));
    assert_eq!(found(1_500, 1_500), (1_500, 0));
    assert_eq!(found(600, 1_500), (600, 0));
}

#[test]
fn larger_packets_are_tried_again_later_when_they_pass_no_more() {
    let mut sizing = Sizing::new(9_000);
    sizing.sent();
    sizing.learn(Time(0), 9_000, true);
    sizing.fall_back(Time(5));
    assert_eq!((sizing.bytes(), sizing.probe(Time(5))), (1_500, None));
    assert_eq!(sizing.probe(Time(5) + SIZE_WAIT), Some(9_000));
}

#[test]
fn large_packets_that_are_lost_while_none_arrives_are_given_up() {
    let mut sizing = Sizing::new(9_000);
    sizing.learn(Time(0), 9_000, true);
    for _ in 0..10 {
        sizing.watch(Time(1), false, LARGE_LOST_MAX - 1);
        sizing.watch(Time(1), true, 1);
    }
    assert_eq!(sizing.bytes(), 9_000, "some are lost on any cable");
    (0..LARGE_LOST_MAX).for_each(|_| sizing.watch(Time(2), false, 1));
    assert_eq!(sizing.bytes(), PACKET_BYTES_PLAIN);
}
