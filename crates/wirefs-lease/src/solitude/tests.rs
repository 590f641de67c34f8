use super::{Solitude, Standing};
use crate::grantor::{Config, HolderKey};
use crate::limits::{ANSWER, HANDOVER_MAX, MARGIN, TERM};
use crate::recall::Serial;
use std::time::Duration;
use wirefs_op::Time;

const A: HolderKey = HolderKey(1);
const B: HolderKey = HolderKey(2);
const BEGIN: Time = Time(0);

fn alone() -> Solitude {
    let mut solitude = Solitude::new(Config::default());
    solitude.tell(BEGIN, A);
    solitude
}

/// A is alone, and was told at the beginning that others come.
fn giving_way() -> Solitude {
    let mut solitude = alone();
    assert!(solitude.ask(BEGIN));
    solitude.told(Serial(7));
    solitude
}

/// Lets time pass second by second, up to so many; A is heard in each where `act` says so. When it was over, and when A was
/// expelled.
fn pass(
    solitude: &mut Solitude,
    seconds: u64,
    mut act: impl FnMut(&mut Solitude, Time, u64),
) -> (Option<u64>, Option<u64>) {
    let (mut over, mut expelled) = (None, None);
    for second in 1..=seconds {
        let now = BEGIN + Duration::from_secs(second);
        act(solitude, now, second);
        match solitude.pass(now) {
            Standing::Stays => {}
            Standing::Over => over = over.or(Some(second)),
            Standing::Expelled(A) => expelled = expelled.or(Some(second)),
            Standing::Expelled(other) => panic!("{other:?} is not alone"),
        }
    }
    (over, expelled)
}

#[test]
fn who_answers_gives_way_at_once() {
    let mut solitude = giving_way();
    assert!(!solitude.answered(A, Serial(6)) && !solitude.answered(B, Serial(7)));
    assert!(solitude.is_giving_way());
    assert!(solitude.answered(A, Serial(7)));
    assert!(solitude.is_shared() && solitude.deadline().is_none());
    assert!(!solitude.answered(A, Serial(7)), "it was over before");
}

#[test]
fn who_is_alone_stays_so_as_long_as_nobody_asks() {
    let mut solitude = alone();
    assert_eq!((pass(&mut solitude, 1000, |_, _, _| {}), solitude.deadline()), ((None, None), None));
    assert_eq!(solitude.holder(), Some(A));
}

#[test]
fn silent_holder_is_waited_for_until_it_believes_nothing_any_more() {
    let mut solitude = giving_way();
    let until = TERM + MARGIN;
    assert_eq!(solitude.deadline(), Some(BEGIN + until));
    assert_eq!(pass(&mut solitude, 60, |_, _, _| {}), (Some(until.as_secs()), None));
    assert!(solitude.is_shared());
}

#[test]
fn who_was_silent_for_so_long_before_is_not_waited_for() {
    let mut solitude = alone();
    let now = BEGIN + TERM + MARGIN;
    assert!(solitude.ask(now), "it may hear of it still");
    assert_eq!(solitude.pass(now), Standing::Over);
}

#[test]
fn lost_connection_counts_as_silence() {
    let mut solitude = giving_way();
    solitude.cut(A);
    assert!(!solitude.answered(A, Serial(7)), "the connection is gone that it was told over");
    assert_eq!(pass(&mut solitude, 60, |_, _, _| {}), (Some((TERM + MARGIN).as_secs()), None));
    let mut solitude = alone();
    solitude.cut(A);
    assert!(!solitude.ask(BEGIN), "there is no way to tell it");
    assert_eq!(pass(&mut solitude, 60, |_, _, _| {}), (Some((TERM + MARGIN).as_secs()), None));
}

#[test]
fn who_is_away_for_long_is_alone_no_more() {
    let mut solitude = alone();
    solitude.cut(A);
    assert_eq!(solitude.deadline(), Some(BEGIN + TERM + MARGIN));
    assert_eq!(pass(&mut solitude, 60, |_, _, _| {}).0, Some((TERM + MARGIN).as_secs()));
    solitude.join(BEGIN + Duration::from_secs(61), A);
    assert!(solitude.is_shared(), "others may have come and gone");
}

#[test]
fn who_comes_back_in_time_is_told_again_and_answers_that() {
    let mut solitude = giving_way();
    solitude.cut(A);
    solitude.join(BEGIN + Duration::from_secs(5), A);
    solitude.told(Serial(9));
    assert!(!solitude.answered(A, Serial(7)));
    assert!(solitude.answered(A, Serial(9)));
}

#[test]
fn who_is_heard_and_does_not_give_way_is_expelled_and_believes_nothing_after_a_term() {
    let mut solitude = giving_way();
    let (over, expelled) = pass(&mut solitude, 60, |solitude, now, _| solitude.heard(now, A));
    let answer = ANSWER.as_secs();
    assert_eq!((over, expelled), (Some(answer + (TERM + MARGIN).as_secs()), Some(answer)));
}

#[test]
fn who_was_expelled_and_comes_back_at_once_gains_no_time() {
    let mut solitude = giving_way();
    let (over, _) = pass(&mut solitude, 60, |solitude, now, second| {
        if second == ANSWER.as_secs() + 1 {
            solitude.join(now, A);
            solitude.told(Serial(9));
        }
        solitude.heard(now, A);
    });
    assert_eq!(over, Some((ANSWER + TERM + MARGIN).as_secs()));
}

#[test]
fn who_brings_one_change_after_the_other_is_waited_for_but_not_for_ever() {
    let mut solitude = giving_way();
    let (over, expelled) = pass(&mut solitude, 300, |solitude, now, second| {
        solitude.heard(now, A);
        if second % (ANSWER.as_secs() - 1) == 0 {
            solitude.progressed(now, A);
            solitude.progressed(now, B);
        }
    });
    let longest = HANDOVER_MAX.as_secs();
    assert_eq!((over, expelled), (Some(longest + (TERM + MARGIN).as_secs()), Some(longest)));
}

#[test]
fn changes_of_others_are_no_progress() {
    let mut solitude = giving_way();
    let (_, expelled) = pass(&mut solitude, 60, |solitude, now, _| {
        solitude.heard(now, A);
        solitude.progressed(now, B);
    });
    assert_eq!(expelled, Some(ANSWER.as_secs()));
}

#[test]
fn who_wakes_up_is_given_time_anew() {
    let mut solitude = giving_way();
    let (over, expelled) = pass(&mut solitude, 40, |solitude, now, second| {
        if second >= 12 {
            solitude.heard(now, A);
        }
    });
    assert_eq!((over, expelled), (None, Some(12 + ANSWER.as_secs())));
}

#[test]
fn who_rests_is_not_waited_for() {
    let mut solitude = giving_way();
    solitude.rest(B);
    assert!(solitude.is_giving_way());
    solitude.rest(A);
    assert!(solitude.is_shared());
    let mut solitude = alone();
    solitude.rest(A);
    assert!(!solitude.is_shared(), "nobody asks yet");
    assert!(solitude.ask(BEGIN), "it must not take itself for alone when it goes on");
    assert_eq!(solitude.pass(BEGIN), Standing::Over);
}

#[test]
fn who_answers_that_it_is_alone_rests_also_when_others_came_meanwhile() {
    let mut solitude = Solitude::new(Config::default());
    solitude.tell(BEGIN, A);
    solitude.told(Serial(3));
    assert!(!solitude.answered(A, Serial(2)) && !solitude.answered(B, Serial(3)));
    assert!(solitude.answered(A, Serial(3)));
    assert!(!solitude.is_shared(), "nobody asks yet");
    assert!(solitude.ask(BEGIN));
    solitude.told(Serial(4));
    assert_eq!(solitude.pass(BEGIN), Standing::Over);

    let mut solitude = Solitude::new(Config::default());
    solitude.tell(BEGIN, A);
    solitude.told(Serial(3));
    solitude.ask(BEGIN);
    solitude.told(Serial(4));
    assert!(solitude.answered(A, Serial(3)), "the two messages have crossed");
    assert!(solitude.is_shared());
}

#[test]
fn who_is_heard_after_it_rested_is_waited_for() {
    let mut solitude = alone();
    solitude.rest(A);
    solitude.heard(BEGIN, A);
    assert!(solitude.ask(BEGIN));
    assert_eq!(solitude.pass(BEGIN), Standing::Stays);
}

#[test]
fn others_are_not_taken_for_who_is_alone() {
    let mut solitude = giving_way();
    solitude.leave(B);
    solitude.cut(B);
    solitude.join(BEGIN, B);
    assert!(solitude.is_connected() && solitude.is_giving_way());
    solitude.leave(A);
    assert!(solitude.is_shared());
}
