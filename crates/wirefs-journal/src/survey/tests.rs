use super::*;
use crate::header::tests::header;
use crate::segment::scan;
use crate::segment::tests::{record, written};
use bytes::Bytes;

fn take(survey: &mut Survey, number: u64, segment: Vec<u8>) -> Taken {
    survey.take(number, scan(&Bytes::from(segment))).unwrap()
}

fn numbers(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.number).collect()
}

#[test]
fn segments_follow_each_other() {
    let mut survey = Survey::default();
    let (first, _) = written(3, &[record(5, "five"), Entry::Answered(6), record(6, "six")]);
    let (second, _) = written(4, &[Entry::Forget(6), record(9, "nine")]);
    assert_eq!(numbers(&take(&mut survey, 3, first).records), [5, 6]);
    assert_eq!(numbers(&take(&mut survey, 4, second).records), [9]);
    assert_eq!(take(&mut survey, 5, vec![0; 100]), Taken::default());
    assert_eq!((survey.header.clone(), survey.damage), (Some(header(3)), None));
    assert_eq!(survey.needed_from(0), (2, 7));
    assert_eq!(survey.needed_from(9), (1, 4));
    assert!(survey.has_answers());
}

#[test]
fn nothing_behind_damage_is_carried_out() {
    let mut survey = Survey::default();
    let (mut first, starts) = written(1, &[record(1, "one"), record(2, "two"), record(3, "three")]);
    first[starts[1] + 5] ^= 1;
    let (second, _) = written(2, &[record(4, "four"), Entry::Answered(2)]);
    let taken = take(&mut survey, 1, first);
    assert_eq!((numbers(&taken.records), numbers(&taken.behind)), (vec![1], vec![3]));
    let taken = take(&mut survey, 2, second);
    assert_eq!((numbers(&taken.records), numbers(&taken.behind)), (vec![], vec![4]));
    assert_eq!(survey.damage, Some(Damage { segment: 1, at: starts[1] as u64 }));
    assert_eq!((survey.behind, survey.answered), (2, 2));
}

#[test]
fn a_torn_end_is_no_damage_unless_more_was_written_behind_it() {
    let mut survey = Survey::default();
    let (mut only, _) = written(1, &[record(1, "one"), record(2, "two")]);
    only.truncate(only.len() - 1);
    assert_eq!(numbers(&take(&mut survey, 1, only.clone()).records), [1]);
    assert_eq!(survey.damage, None);
    let (second, _) = written(2, &[record(3, "three")]);
    assert_eq!(numbers(&take(&mut survey, 2, second).behind), [3]);
}

#[test]
fn a_segment_that_is_missing_or_anothers_is_damage() {
    for (number, segment) in [(3, written(3, &[record(2, "")]).0), (2, written(7, &[record(2, "")]).0)] {
        let mut survey = Survey::default();
        take(&mut survey, 1, written(1, &[record(1, "")]).0);
        assert_eq!(numbers(&take(&mut survey, number, segment).behind), [2]);
        assert_eq!(survey.damage, Some(Damage { segment: number, at: 0 }));
    }
    let mut survey = Survey::default();
    take(&mut survey, 1, b"something that was never a journal".to_vec());
    assert_eq!((survey.damage, survey.header), (Some(Damage { segment: 1, at: 0 }), None));
}

#[test]
fn numbers_that_go_back_are_damage() {
    let mut survey = Survey::default();
    let taken = take(&mut survey, 1, written(1, &[record(2, ""), record(2, ""), record(3, "")]).0);
    assert_eq!((numbers(&taken.records), numbers(&taken.behind)), (vec![2], vec![2, 3]));
}

#[test]
fn another_version_is_refused() {
    let (mut segment, _) = written(1, &[record(1, "one")]);
    segment[16] = 9;
    let refused = Survey::default().take(1, scan(&Bytes::from(segment)));
    assert_eq!(refused, Err(HeaderFault::Version(9)));
}

#[test]
fn whether_the_server_has_answered_is_known() {
    let answered = |entries: &[Entry]| {
        let mut survey = Survey::default();
        take(&mut survey, 1, written(1, entries).0);
        survey.has_answers()
    };
    assert!(!answered(&[record(1, "one"), record(2, "two")]));
    assert!(!answered(&[record(1, "one"), Entry::Answered(1)]));
    assert!(answered(&[record(1, "one"), Entry::Answered(2)]));
    assert!(answered(&[record(1, "one"), Entry::Forget(2)]));
}

#[test]
fn a_journal_whose_first_segment_is_gone_was_answered_though_nothing_says_so() {
    let mut survey = Survey::default();
    take(&mut survey, 2, written(2, &[record(7, "seven")]).0);
    assert!(survey.has_answers() && survey.answered == 0 && survey.damage.is_none());
}
