use super::*;
use crate::header::tests::header;
use crate::limits::SECTOR_BYTES;
use crate::segment::scan;
use crate::segment::tests::{record, written};
use bytes::Bytes;

fn take(survey: &mut Survey, number: u64, segment: Vec<u8>) -> SegmentRecords {
    survey.take(number, scan(&Bytes::from(segment))).unwrap()
}

fn numbers(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.number).collect()
}

#[test]
fn segments_follow_each_other() {
    let mut survey = Survey::default();
    let (first, _) = written(3, &[record(5, "five"), Entry::Answered(6), record(6, "six")]);
    let (second, _) = written(4, &[Entry::Durable(6), record(9, "nine")]);
    assert_eq!(numbers(&take(&mut survey, 3, first).records), [5, 6]);
    assert_eq!(numbers(&take(&mut survey, 4, second).records), [9]);
    assert_eq!(take(&mut survey, 5, vec![0; 100]), SegmentRecords::default());
    assert_eq!((survey.header.clone(), survey.damage), (Some(header(3)), None));
    assert_eq!(survey.needed_from(0), (2, 7));
    assert_eq!(survey.needed_from(9), (1, 4));
    assert!(survey.has_answers());
}

#[test]
fn changes_behind_damage_are_not_applied() {
    let mut survey = Survey::default();
    let (mut first, starts) = written(1, &[record(1, "one"), record(2, "two"), record(3, "three")]);
    first[starts[1] + 5] ^= 1;
    let (second, _) = written(2, &[record(4, "four"), Entry::Answered(2)]);
    let taken = take(&mut survey, 1, first);
    assert_eq!((numbers(&taken.records), numbers(&taken.after_damage)), (vec![1], vec![3]));
    let taken = take(&mut survey, 2, second);
    assert_eq!((numbers(&taken.records), numbers(&taken.after_damage)), (vec![], vec![4]));
    assert_eq!(survey.damage, Some(Damage { segment: 1, at: starts[1] as u64 }));
    assert_eq!((survey.after_damage, survey.answered), (2, 2));
}

#[test]
fn torn_end_is_damage_only_with_entries_behind_it() {
    let mut survey = Survey::default();
    let (mut only, _) = written(1, &[record(1, "one"), record(2, "two")]);
    only.truncate(only.len() - 1);
    assert_eq!(numbers(&take(&mut survey, 1, only.clone()).records), [1]);
    assert_eq!(survey.damage, None);
    let (second, _) = written(2, &[record(3, "three")]);
    assert_eq!(numbers(&take(&mut survey, 2, second).after_damage), [3]);
}

/// Returns a segment with a hole between two changes.
fn holed(number: u64, before: u64, after: u64) -> Vec<u8> {
    let lost = record(before + 1, vec![b'x'; 3 * SECTOR_BYTES]);
    let (mut segment, starts) =
        written(number, &[record(before, "before"), lost, record(after, "after"), Entry::Answered(before)]);
    let first = starts[1] / SECTOR_BYTES + 1;
    segment[first * SECTOR_BYTES..][..SECTOR_BYTES].fill(0);
    segment
}

#[test]
fn hole_at_the_end_of_another_kernel_run_is_no_damage() {
    let run = header(1).run;
    for (now, is_cut) in [(run + 1, true), (run, false)] {
        let mut survey = Survey::default();
        take(&mut survey, 1, written(1, &[record(1, "one"), record(2, "two")]).0);
        let taken = take(&mut survey, 2, holed(2, 3, 5));
        assert_eq!((numbers(&taken.records), numbers(&taken.after_damage)), (vec![3], vec![5]));
        // A segment without entries, and one whose header did not reach the disk.
        take(&mut survey, 3, written(3, &[]).0);
        take(&mut survey, 4, vec![0; 100]);
        survey.ended(now);
        assert_eq!((survey.damage.is_none(), survey.after_damage), (is_cut, u64::from(!is_cut)));
        assert_eq!((survey.needed_from(0).0, survey.answered, survey.end()), (3, 3, 6));
    }
}

#[test]
fn hole_before_another_segment_and_wrong_bytes_are_damage() {
    let now = header(1).run + 1;
    let mut survey = Survey::default();
    take(&mut survey, 1, holed(1, 1, 3));
    take(&mut survey, 2, written(2, &[record(4, "four")]).0);
    survey.ended(now);
    assert_eq!((survey.damage.map(|damage| damage.segment), survey.after_damage), (Some(1), 2));

    let mut survey = Survey::default();
    let (mut wrong, starts) = written(1, &[record(1, "one"), record(2, "two")]);
    wrong[starts[0] + 5] ^= 1;
    take(&mut survey, 1, wrong);
    take(&mut survey, 2, holed(2, 3, 5));
    survey.ended(now);
    assert_eq!((survey.damage.map(|damage| damage.segment), survey.after_damage), (Some(1), 3));
}

#[test]
fn entries_behind_a_torn_or_blank_segment_are_damage() {
    let (mut torn, _) = written(2, &[record(2, "two")]);
    torn.truncate(torn.len() - 1);
    for unfinished in [torn, vec![0; 5000]] {
        let mut survey = Survey::default();
        take(&mut survey, 1, written(1, &[record(1, "one")]).0);
        take(&mut survey, 2, unfinished);
        take(&mut survey, 3, written(3, &[]).0);
        assert_eq!((survey.damage, survey.needed_from(0).0), (None, 1));
        assert_eq!(numbers(&take(&mut survey, 4, written(4, &[record(4, "four")]).0).after_damage), [4]);
        assert_eq!(survey.damage.map(|damage| damage.segment), Some(2));
    }
}

#[test]
fn missing_or_foreign_segment_is_damage() {
    for (number, segment) in [(3, written(3, &[record(2, "")]).0), (2, written(7, &[record(2, "")]).0)] {
        let mut survey = Survey::default();
        take(&mut survey, 1, written(1, &[record(1, "")]).0);
        assert_eq!(numbers(&take(&mut survey, number, segment).after_damage), [2]);
        assert_eq!(survey.damage, Some(Damage { segment: number, at: 0 }));
    }
    let mut survey = Survey::default();
    take(&mut survey, 1, b"another file".to_vec());
    assert_eq!((survey.damage, survey.header), (Some(Damage { segment: 1, at: 0 }), None));
}

#[test]
fn decreasing_numbers_are_damage() {
    let mut survey = Survey::default();
    let taken = take(&mut survey, 1, written(1, &[record(2, ""), record(2, ""), record(3, "")]).0);
    assert_eq!((numbers(&taken.records), numbers(&taken.after_damage)), (vec![2], vec![2, 3]));
}

#[test]
fn other_version_is_rejected() {
    let (mut segment, _) = written(1, &[record(1, "one")]);
    segment[16] = 9;
    let rejected = Survey::default().take(1, scan(&Bytes::from(segment)));
    assert_eq!(rejected, Err(HeaderFault::Version(9)));
}

#[test]
fn answers_of_the_server_are_known() {
    let answered = |entries: &[Entry]| {
        let mut survey = Survey::default();
        take(&mut survey, 1, written(1, entries).0);
        survey.has_answers()
    };
    assert!(!answered(&[record(1, "one"), record(2, "two")]));
    assert!(!answered(&[record(1, "one"), Entry::Answered(1)]));
    assert!(answered(&[record(1, "one"), Entry::Answered(2)]));
    assert!(answered(&[record(1, "one"), Entry::Durable(2)]));
}

#[test]
fn missing_first_segment_proves_answers() {
    let mut survey = Survey::default();
    take(&mut survey, 2, written(2, &[record(7, "seven")]).0);
    assert!(survey.has_answers() && survey.answered == 0 && survey.damage.is_none());
}
