use super::{Numbers, REPORT_EVERY, Turn};
use wirefs_op::limits::LEDGER_MAX;
use wirefs_op::message::number::Tnumber;

fn agreed() -> Numbers {
    let mut numbers = Numbers::default();
    numbers.attached(Some(0), false);
    numbers
}

/// Sends a change; tells its number and what was said before it.
fn send(numbers: &mut Numbers, number: Option<u64>) -> Option<(u64, Option<Tnumber>)> {
    let (mut number, mut told) = (number, None);
    loop {
        match numbers.give(&mut number) {
            Turn::Goes => return number.map(|number| (number, told)),
            Turn::Behind(remark) => assert_eq!(told.replace(remark), None, "said twice"),
            Turn::Waits => return None,
        }
    }
}

fn stated(number: u64, answered: u64) -> Option<Tnumber> {
    Some(Tnumber { number, answered })
}

#[test]
fn first_change_of_a_connection_states_its_number_and_later_ones_count_on() {
    let mut numbers = agreed();
    assert_eq!(send(&mut numbers, None), Some((1, stated(1, 1))));
    assert_eq!(send(&mut numbers, None), Some((2, None)));
    assert_eq!(send(&mut numbers, None), Some((3, None)));
}

#[test]
fn changes_sent_again_keep_their_numbers_and_gaps_are_stated() {
    let mut numbers = agreed();
    for _ in 0..5 {
        send(&mut numbers, None);
    }
    for answered in [1, 3] {
        numbers.answered(Some(answered));
    }
    numbers.attached(Some(1), true);
    assert_eq!(send(&mut numbers, Some(2)), Some((2, stated(2, 2))));
    assert_eq!(send(&mut numbers, Some(4)), Some((4, stated(4, 2))));
    assert_eq!(send(&mut numbers, Some(5)), Some((5, None)));
    assert_eq!(send(&mut numbers, None), Some((6, None)));
}

#[test]
fn a_change_that_was_given_up_leaves_a_gap() {
    let mut numbers = agreed();
    send(&mut numbers, None);
    send(&mut numbers, None);
    numbers.answered(Some(1));
    numbers.answered(Some(2));
    numbers.attached(Some(1), true);
    assert_eq!(send(&mut numbers, None), Some((3, stated(3, 3))));
}

#[test]
fn a_server_that_knows_no_numbers_gets_new_ones() {
    let mut numbers = agreed();
    send(&mut numbers, None);
    numbers.attached(Some(0), false);
    assert_eq!(send(&mut numbers, None), Some((2, stated(2, 2))));
}

#[test]
fn numbers_go_on_above_those_of_the_session_from_before() {
    let mut numbers = Numbers::default();
    numbers.attached(Some(70), true);
    assert_eq!(send(&mut numbers, None), Some((70, stated(70, 70))));
}

// S-88
#[test]
fn a_client_that_does_not_know_a_sessions_numbers_begins_above_all_that_the_server_may_have_seen() {
    let mut numbers = Numbers::default();
    numbers.attached(Some(70), false);
    let first = 70 + LEDGER_MAX;
    assert_eq!(send(&mut numbers, None), Some((first, stated(first, first))));
}

#[test]
fn without_the_feature_nothing_is_numbered() {
    let mut numbers = Numbers::default();
    let mut number = None;
    assert_eq!(numbers.give(&mut number), Turn::Goes);
    assert_eq!(number, None);
}

#[test]
fn server_learns_in_time_which_changes_were_answered() {
    let mut numbers = agreed();
    let mut remarks = 0;
    let (mut told, mut ledger) = (0, 0);
    for _ in 0..10_000 {
        let (number, remark) = send(&mut numbers, None).unwrap();
        if let Some(remark) = remark {
            remarks += 1;
            told = remark.answered;
        }
        ledger = ledger.max(number - told);
        numbers.answered(Some(number));
    }
    assert_eq!(remarks, 1 + 10_000 / REPORT_EVERY - u64::from(10_000 % REPORT_EVERY == 0));
    assert!(ledger <= REPORT_EVERY);
}

#[test]
fn one_change_that_is_not_answered_holds_up_those_too_far_behind_it() {
    let mut numbers = agreed();
    assert_eq!(send(&mut numbers, None), Some((1, stated(1, 1))));
    let mut sent = 1;
    while let Some((number, _)) = send(&mut numbers, None) {
        numbers.answered(Some(number));
        sent += 1;
    }
    assert_eq!(sent, LEDGER_MAX);
    numbers.answered(Some(1));
    let next = LEDGER_MAX + 1;
    assert_eq!(send(&mut numbers, None), Some((next, stated(next, next))));
}
