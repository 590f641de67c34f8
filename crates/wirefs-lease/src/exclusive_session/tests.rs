use super::{ExclusiveOutcome, ExclusiveSession};
use crate::grantor::{HolderKey, LeaseConfig};
use crate::limits::{ANSWER, EXCLUSIVE_RECALL_MAX, MARGIN, TERM};
use crate::recall::Serial;
use std::time::Duration;
use wirefs_op::Time;

const A: HolderKey = HolderKey(1);
const B: HolderKey = HolderKey(2);
const BEGIN: Time = Time(0);

fn exclusive_to_a() -> ExclusiveSession {
    let mut exclusive = ExclusiveSession::new(LeaseConfig::default());
    exclusive.grant(BEGIN, A);
    exclusive
}

/// A is alone, and was told at the beginning that others come.
fn recalling() -> ExclusiveSession {
    let mut exclusive = exclusive_to_a();
    assert!(exclusive.recall(BEGIN));
    exclusive.notice_sent(Serial(7));
    exclusive
}

/// Lets time pass second by second, up to so many; A is heard in each where `act` says so. When it was over, and when A was
/// expelled.
fn pass(
    exclusive: &mut ExclusiveSession,
    seconds: u64,
    mut act: impl FnMut(&mut ExclusiveSession, Time, u64),
) -> (Option<u64>, Option<u64>) {
    let (mut over, mut expelled) = (None, None);
    for second in 1..=seconds {
        let now = BEGIN + Duration::from_secs(second);
        act(exclusive, now, second);
        match exclusive.tick(now) {
            ExclusiveOutcome::Stays => {}
            ExclusiveOutcome::Shared => over = over.or(Some(second)),
            ExclusiveOutcome::Expelled(A) => expelled = expelled.or(Some(second)),
            ExclusiveOutcome::Expelled(other) => panic!("{other:?} is not alone"),
        }
    }
    (over, expelled)
}

#[test]
fn who_answers_gives_way_at_once() {
    let mut exclusive = recalling();
    assert!(!exclusive.answered(A, Serial(6)) && !exclusive.answered(B, Serial(7)));
    assert!(exclusive.is_recalling());
    assert!(exclusive.answered(A, Serial(7)));
    assert!(exclusive.is_shared() && exclusive.deadline().is_none());
    assert!(!exclusive.answered(A, Serial(7)), "it was over before");
}

#[test]
fn who_is_alone_stays_so_as_long_as_nobody_asks() {
    let mut exclusive = exclusive_to_a();
    assert_eq!((pass(&mut exclusive, 1000, |_, _, _| {}), exclusive.deadline()), ((None, None), None));
    assert_eq!(exclusive.holder(), Some(A));
}

#[test]
fn silent_holder_is_waited_for_until_it_believes_nothing_any_more() {
    let mut exclusive = recalling();
    let until = TERM + MARGIN;
    assert_eq!(exclusive.deadline(), Some(BEGIN + until));
    assert_eq!(pass(&mut exclusive, 60, |_, _, _| {}), (Some(until.as_secs()), None));
    assert!(exclusive.is_shared());
}

#[test]
fn who_was_silent_for_so_long_before_is_not_waited_for() {
    let mut exclusive = exclusive_to_a();
    let now = BEGIN + TERM + MARGIN;
    assert!(exclusive.recall(now), "it may hear of it still");
    assert_eq!(exclusive.tick(now), ExclusiveOutcome::Shared);
}

#[test]
fn lost_connection_counts_as_silence() {
    let mut exclusive = recalling();
    exclusive.disconnected(A);
    assert!(!exclusive.answered(A, Serial(7)), "the connection is gone that it was told over");
    assert_eq!(pass(&mut exclusive, 60, |_, _, _| {}), (Some((TERM + MARGIN).as_secs()), None));
    let mut exclusive = exclusive_to_a();
    exclusive.disconnected(A);
    assert!(!exclusive.recall(BEGIN), "there is no way to tell it");
    assert_eq!(pass(&mut exclusive, 60, |_, _, _| {}), (Some((TERM + MARGIN).as_secs()), None));
}

#[test]
fn who_is_away_for_long_is_alone_no_more() {
    let mut exclusive = exclusive_to_a();
    exclusive.disconnected(A);
    assert_eq!(exclusive.deadline(), Some(BEGIN + TERM + MARGIN));
    assert_eq!(pass(&mut exclusive, 60, |_, _, _| {}).0, Some((TERM + MARGIN).as_secs()));
    exclusive.reconnected(BEGIN + Duration::from_secs(61), A);
    assert!(exclusive.is_shared(), "others may have come and gone");
}

#[test]
fn who_comes_back_in_time_is_told_again_and_answers_that() {
    let mut exclusive = recalling();
    exclusive.disconnected(A);
    exclusive.reconnected(BEGIN + Duration::from_secs(5), A);
    exclusive.notice_sent(Serial(9));
    assert!(!exclusive.answered(A, Serial(7)));
    assert!(exclusive.answered(A, Serial(9)));
}

#[test]
fn who_is_heard_and_does_not_give_way_is_expelled_and_believes_nothing_after_a_term() {
    let mut exclusive = recalling();
    let (over, expelled) = pass(&mut exclusive, 60, |exclusive, now, _| exclusive.renew(now, A));
    let answer = ANSWER.as_secs();
    assert_eq!((over, expelled), (Some(answer + (TERM + MARGIN).as_secs()), Some(answer)));
}

#[test]
fn who_was_expelled_and_comes_back_at_once_gains_no_time() {
    let mut exclusive = recalling();
    let (over, _) = pass(&mut exclusive, 60, |exclusive, now, second| {
        if second == ANSWER.as_secs() + 1 {
            exclusive.reconnected(now, A);
            exclusive.notice_sent(Serial(9));
        }
        exclusive.renew(now, A);
    });
    assert_eq!(over, Some((ANSWER + TERM + MARGIN).as_secs()));
}

#[test]
fn who_brings_one_change_after_the_other_is_waited_for_but_not_for_ever() {
    let mut exclusive = recalling();
    let (over, expelled) = pass(&mut exclusive, 300, |exclusive, now, second| {
        exclusive.renew(now, A);
        if second % (ANSWER.as_secs() - 1) == 0 {
            exclusive.progressed(now, A);
            exclusive.progressed(now, B);
        }
    });
    let longest = EXCLUSIVE_RECALL_MAX.as_secs();
    assert_eq!((over, expelled), (Some(longest + (TERM + MARGIN).as_secs()), Some(longest)));
}

#[test]
fn changes_of_others_are_no_progress() {
    let mut exclusive = recalling();
    let (_, expelled) = pass(&mut exclusive, 60, |exclusive, now, _| {
        exclusive.renew(now, A);
        exclusive.progressed(now, B);
    });
    assert_eq!(expelled, Some(ANSWER.as_secs()));
}

#[test]
fn who_wakes_up_is_given_time_anew() {
    let mut exclusive = recalling();
    let (over, expelled) = pass(&mut exclusive, 40, |exclusive, now, second| {
        if second >= 12 {
            exclusive.renew(now, A);
        }
    });
    assert_eq!((over, expelled), (None, Some(12 + ANSWER.as_secs())));
}

#[test]
fn who_rests_is_not_waited_for() {
    let mut exclusive = recalling();
    exclusive.release(B);
    assert!(exclusive.is_recalling());
    exclusive.release(A);
    assert!(exclusive.is_shared());
    let mut exclusive = exclusive_to_a();
    exclusive.release(A);
    assert!(!exclusive.is_shared(), "nobody asks yet");
    assert!(exclusive.recall(BEGIN), "it must not take itself for alone when it goes on");
    assert_eq!(exclusive.tick(BEGIN), ExclusiveOutcome::Shared);
}

#[test]
fn who_answers_that_it_is_alone_rests_also_when_others_came_meanwhile() {
    let mut exclusive = ExclusiveSession::new(LeaseConfig::default());
    exclusive.grant(BEGIN, A);
    exclusive.notice_sent(Serial(3));
    assert!(!exclusive.answered(A, Serial(2)) && !exclusive.answered(B, Serial(3)));
    assert!(exclusive.answered(A, Serial(3)));
    assert!(!exclusive.is_shared(), "nobody asks yet");
    assert!(exclusive.recall(BEGIN));
    exclusive.notice_sent(Serial(4));
    assert_eq!(exclusive.tick(BEGIN), ExclusiveOutcome::Shared);

    let mut exclusive = ExclusiveSession::new(LeaseConfig::default());
    exclusive.grant(BEGIN, A);
    exclusive.notice_sent(Serial(3));
    exclusive.recall(BEGIN);
    exclusive.notice_sent(Serial(4));
    assert!(exclusive.answered(A, Serial(3)), "the two messages have crossed");
    assert!(exclusive.is_shared());
}

#[test]
fn who_is_heard_after_it_rested_is_waited_for() {
    let mut exclusive = exclusive_to_a();
    exclusive.release(A);
    exclusive.renew(BEGIN, A);
    assert!(exclusive.recall(BEGIN));
    assert_eq!(exclusive.tick(BEGIN), ExclusiveOutcome::Stays);
}

#[test]
fn others_are_not_taken_for_who_is_alone() {
    let mut exclusive = recalling();
    exclusive.end(B);
    exclusive.disconnected(B);
    exclusive.reconnected(BEGIN, B);
    assert!(exclusive.is_connected() && exclusive.is_recalling());
    exclusive.end(A);
    assert!(exclusive.is_shared());
}
