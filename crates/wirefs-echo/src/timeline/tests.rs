use super::*;

fn ms(count: u64) -> Time {
    Time(count * 1_000_000)
}

/// One packet each millisecond, with marks of about 10 ms.
fn sent(packets: u64) -> Timeline {
    let mut line = Timeline::new();
    line.set_lap(Duration::from_millis(160));
    for number in 0..packets {
        assert_eq!(line.send(ms(number), false), Sequence(number));
    }
    line
}

#[test]
fn marks_say_about_when_a_packet_was_sent() {
    let line = sent(1_000);
    for number in 0..1_000 {
        let about = line.sent_about(Sequence(number)).unwrap();
        assert!(about.0.abs_diff(ms(number).0) <= 5_000_000, "{number}: {about:?}");
    }
    assert_eq!(line.sent_about(Sequence(1_000)), None);
}

#[test]
fn closed_marks_count_what_did_not_come() {
    let mut line = sent(100);
    (0..100).filter(|number| number % 10 != 3).for_each(|number| line.answered(Sequence(number)));
    assert_eq!(line.out(), 10);
    assert_eq!(line.close(ms(8)), None, "its last packet was sent at 9 ms");
    let mark = line.close(ms(9)).unwrap();
    assert_eq!(mark.pieces, Tally { sent: 10, answered: 9 });
    assert_eq!(line.out(), 9);
    assert_eq!(line.closed_below(), Sequence(10));
    assert_eq!(line.sent_about(Sequence(9)), None);
    while line.close(ms(1_000)).is_some() {}
    assert_eq!((line.out(), line.closed_below()), (0, Sequence(100)));
}

#[test]
fn dropped_packets_are_no_loss() {
    let mut line = sent(10);
    line.forgive(Sequence(4));
    (0..10).filter(|&number| number != 4).for_each(|number| line.answered(Sequence(number)));
    assert_eq!(line.close(ms(9)).unwrap().pieces.missing(), 0);
}

#[test]
fn replayed_ballast_does_not_hide_a_loss() {
    let mut line = Timeline::new();
    let piece = line.send(ms(0), false);
    let ballast = line.send(ms(0), true);
    for _ in 0..5 {
        line.ballast_answered(ballast);
    }
    let mark = line.close(ms(0)).unwrap();
    assert_eq!((mark.pieces.missing(), mark.ballast.missing()), (1, 0));
    line.answered(piece);
    assert_eq!(line.out(), 0, "what comes late is not counted twice");
}

#[test]
fn marks_stay_few_when_laps_become_longer_than_they_were_made_for() {
    let mut line = Timeline::new();
    for number in 0..100_000 {
        line.send(ms(number), false);
    }
    assert!(line.marks.len() <= MARKS_MAX);
    assert_eq!(line.out(), 100_000);
    assert_eq!(line.closed_below(), Sequence(0));
    assert!(line.marks.iter().zip(line.marks.iter().skip(1)).all(|(one, next)| one.ended <= next.begun));
    assert_eq!(line.marks.iter().map(|mark| mark.pieces.sent).sum::<u64>(), 100_000);
}
