use super::*;

const HEADER: u64 = 100;

#[test]
fn entries_follow_each_other() {
    let mut layout = Layout::new(HEADER);
    let head = HEAD_BYTES as u64;
    assert_eq!(layout.record(1, 10), Ok(Placement { segment: 1, offset: HEADER, opens: false }));
    assert_eq!(layout.note(0), Placement { segment: 1, offset: HEADER + head + 10, opens: false });
    let offset = HEADER + 2 * head + 10;
    assert_eq!(layout.record(5, 0), Ok(Placement { segment: 1, offset, opens: false }));
    assert_eq!(layout.record(5, 0), Err(Misuse::Order { number: 5, last: 5 }));
    assert!(matches!(layout.record(6, BODY_BYTES_MAX + 1), Err(Misuse::Length { .. })));
}

#[test]
fn full_segment_is_followed_and_removed_when_unneeded() {
    let mut layout = Layout::new(HEADER);
    let body = 1000;
    let mut opened = vec![(1, 0)];
    for number in 1.. {
        let placed = layout.record(number, body).unwrap();
        assert!(placed.offset + (HEAD_BYTES + body) as u64 <= SEGMENT_BYTES);
        if placed.opens {
            assert_eq!(placed.offset, HEADER);
            opened.push((placed.segment, number));
        }
        if opened.len() == 4 {
            break;
        }
    }
    let [_, (2, second), (3, third), (4, fourth)] = opened[..] else { panic!("{opened:?}") };
    assert_eq!(layout.forget(second - 1), [0; 0]);
    assert_eq!(layout.first(), Some(second - 1));
    assert_eq!(layout.forget(fourth), [1, 2, 3]);
    // The last segment stays, for later entries.
    assert_eq!(layout.forget(fourth + 1), [0; 0]);
    assert!(layout.is_empty() && third > second);
    assert_eq!(layout.record(fourth + 1, 1).unwrap().segment, 4);
}

#[test]
fn needed_records_are_counted() {
    let mut layout = Layout::new(HEADER);
    for number in 1..=10 {
        layout.record(number, 100).unwrap();
    }
    assert!(layout.forget(4).is_empty());
    let expected = Figures { records: 7, bytes: 700, unanswered_records: 3, unanswered_bytes: 300 };
    assert_eq!(layout.figures(8), expected);
    assert_eq!(layout.figures(11).unanswered_records, 0);
    assert_eq!(layout.figures(0).unanswered_bytes, 700);
}
