use super::*;

fn ms(count: u64) -> Time {
    Time(count * 1_000_000)
}

/// One packet per millisecond, in groups of about 10 ms.
fn sent(packets: u64) -> Timeline {
    let mut timeline = Timeline::new();
    timeline.set_cycle(Duration::from_millis(160));
    for number in 0..packets {
        assert_eq!(timeline.send(ms(number), false), PacketSequence(number));
    }
    timeline
}

#[test]
fn groups_give_approximate_send_times() {
    let timeline = sent(1_000);
    for number in 0..1_000 {
        let about = timeline.sent_about(PacketSequence(number)).unwrap();
        assert!(about.0.abs_diff(ms(number).0) <= 5_000_000, "{number}: {about:?}");
    }
    assert_eq!(timeline.sent_about(PacketSequence(1_000)), None);
}

#[test]
fn closed_groups_count_unanswered_packets() {
    let mut timeline = sent(100);
    (0..100).filter(|number| number % 10 != 3).for_each(|number| timeline.answered(PacketSequence(number)));
    assert_eq!(timeline.in_flight(), 10);
    assert_eq!(timeline.close(ms(8)), None, "its last packet was sent at 9 ms");
    let group = timeline.close(ms(9)).unwrap();
    assert_eq!(group.pieces, Tally { sent: 10, answered: 9 });
    assert_eq!(timeline.in_flight(), 9);
    assert_eq!(timeline.closed_below(), PacketSequence(10));
    assert_eq!(timeline.sent_about(PacketSequence(9)), None);
    while timeline.close(ms(1_000)).is_some() {}
    assert_eq!((timeline.in_flight(), timeline.closed_below()), (0, PacketSequence(100)));
}

#[test]
fn packets_of_dropped_blocks_do_not_count_as_lost() {
    let mut timeline = sent(10);
    timeline.forget(PacketSequence(4));
    (0..10).filter(|&number| number != 4).for_each(|number| timeline.answered(PacketSequence(number)));
    assert_eq!(timeline.close(ms(9)).unwrap().pieces.missing(), 0);
}

#[test]
fn replayed_probe_does_not_hide_a_loss() {
    let mut timeline = Timeline::new();
    let piece = timeline.send(ms(0), false);
    let probes = timeline.send(ms(0), true);
    for _ in 0..5 {
        timeline.probe_answered(probes);
    }
    let group = timeline.close(ms(0)).unwrap();
    assert_eq!((group.pieces.missing(), group.probes.missing()), (1, 0));
    timeline.answered(piece);
    assert_eq!(timeline.in_flight(), 0, "a late reply is not counted twice");
}

#[test]
fn groups_are_merged_when_cycles_become_longer() {
    let mut timeline = Timeline::new();
    for number in 0..100_000 {
        timeline.send(ms(number), false);
    }
    assert!(timeline.groups.len() <= SEND_GROUPS_MAX);
    assert_eq!(timeline.in_flight(), 100_000);
    assert_eq!(timeline.closed_below(), PacketSequence(0));
    assert!(
        timeline.groups.iter().zip(timeline.groups.iter().skip(1)).all(|(one, next)| one.ended <= next.begun)
    );
    assert_eq!(timeline.groups.iter().map(|group| group.pieces.sent).sum::<u64>(), 100_000);
}
