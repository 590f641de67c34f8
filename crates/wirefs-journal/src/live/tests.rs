use super::*;

const HEADER: u64 = 100;

#[test]
fn entries_stand_behind_each_other() {
    let mut live = Live::new(HEADER);
    let head = HEAD_BYTES as u64;
    assert_eq!(live.record(1, 10), Ok(Placed { segment: 1, offset: HEADER, opens: false }));
    assert_eq!(live.note(0), Placed { segment: 1, offset: HEADER + head + 10, opens: false });
    let offset = HEADER + 2 * head + 10;
    assert_eq!(live.record(5, 0), Ok(Placed { segment: 1, offset, opens: false }));
    assert_eq!(live.record(5, 0), Err(Misuse::Order { number: 5, last: 5 }));
    assert!(matches!(live.record(6, BODY_BYTES_MAX + 1), Err(Misuse::Length { .. })));
}

#[test]
fn a_segment_that_is_full_is_followed_by_another_and_goes_when_nothing_of_it_is_needed() {
    let mut live = Live::new(HEADER);
    let body = 1000;
    let mut opened = vec![(1, 0)];
    for number in 1.. {
        let placed = live.record(number, body).unwrap();
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
    assert_eq!(live.forget(second - 1), [0; 0]);
    assert_eq!(live.first(), Some(second - 1));
    assert_eq!(live.forget(fourth), [1, 2, 3]);
    // The last one stays, to be written to.
    assert_eq!(live.forget(fourth + 1), [0; 0]);
    assert!(live.is_empty() && third > second);
    assert_eq!(live.record(fourth + 1, 1).unwrap().segment, 4);
}

#[test]
fn what_is_needed_is_counted() {
    let mut live = Live::new(HEADER);
    for number in 1..=10 {
        live.record(number, 100).unwrap();
    }
    assert!(live.forget(4).is_empty());
    let expected = Figures { records: 7, bytes: 700, unanswered_records: 3, unanswered_bytes: 300 };
    assert_eq!(live.figures(8), expected);
    assert_eq!(live.figures(11).unanswered_records, 0);
    assert_eq!(live.figures(0).unanswered_bytes, 700);
}
