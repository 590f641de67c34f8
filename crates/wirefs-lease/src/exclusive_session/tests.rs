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

/// A has the exclusive session, and its recall starts at the beginning.
fn recalling() -> ExclusiveSession {
    let mut exclusive = exclusive_to_a();
    assert!(exclusive.recall(BEGIN));
    exclusive.notice_sent(Serial(7));
    exclusive
}

/// Advances the clock second by second, for at most `seconds`, with an action in each. Returns the second
/// when the session ended, and the second when A was expelled.
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
            ExclusiveOutcome::Expelled(other) => panic!("{other:?} does not have the exclusive session"),
        }
    }
    (over, expelled)
}

#[test]
fn an_answer_ends_the_exclusive_session_immediately() {
    let mut exclusive = recalling();
    assert!(!exclusive.answered(A, Serial(6)) && !exclusive.answered(B, Serial(7)));
    assert!(exclusive.is_recalling());
    assert!(exclusive.answered(A, Serial(7)));
    assert!(exclusive.is_shared() && exclusive.deadline().is_none());
    assert!(!exclusive.answered(A, Serial(7)), "the session had ended before");
}

#[test]
fn an_exclusive_session_lasts_until_it_is_recalled() {
    let mut exclusive = exclusive_to_a();
    assert_eq!((pass(&mut exclusive, 1000, |_, _, _| {}), exclusive.deadline()), ((None, None), None));
    assert_eq!(exclusive.holder(), Some(A));
}

#[test]
fn a_silent_exclusive_holder_is_awaited_until_its_leases_expire() {
    let mut exclusive = recalling();
    let until = TERM + MARGIN;
    assert_eq!(exclusive.deadline(), Some(BEGIN + until));
    assert_eq!(pass(&mut exclusive, 60, |_, _, _| {}), (Some(until.as_secs()), None));
    assert!(exclusive.is_shared());
}

#[test]
fn the_recall_does_not_wait_for_a_holder_silent_for_the_term() {
    let mut exclusive = exclusive_to_a();
    let now = BEGIN + TERM + MARGIN;
    assert!(exclusive.recall(now), "the notice can still reach it");
    assert_eq!(exclusive.tick(now), ExclusiveOutcome::Shared);
}

#[test]
fn a_lost_connection_counts_as_silence() {
    let mut exclusive = recalling();
    exclusive.disconnected(A);
    assert!(!exclusive.answered(A, Serial(7)), "the notice was sent on a closed connection");
    assert_eq!(pass(&mut exclusive, 60, |_, _, _| {}), (Some((TERM + MARGIN).as_secs()), None));
    let mut exclusive = exclusive_to_a();
    exclusive.disconnected(A);
    assert!(!exclusive.recall(BEGIN), "no connection to send a notice on");
    assert_eq!(pass(&mut exclusive, 60, |_, _, _| {}), (Some((TERM + MARGIN).as_secs()), None));
}

#[test]
fn a_long_disconnect_ends_the_exclusive_session() {
    let mut exclusive = exclusive_to_a();
    exclusive.disconnected(A);
    assert_eq!(exclusive.deadline(), Some(BEGIN + TERM + MARGIN));
    assert_eq!(pass(&mut exclusive, 60, |_, _, _| {}).0, Some((TERM + MARGIN).as_secs()));
    exclusive.reconnected(BEGIN + Duration::from_secs(61), A);
    assert!(exclusive.is_shared(), "other sessions may have come and gone");
}

#[test]
fn a_reconnected_holder_gets_a_new_notice_and_answers_it() {
    let mut exclusive = recalling();
    exclusive.disconnected(A);
    exclusive.reconnected(BEGIN + Duration::from_secs(5), A);
    exclusive.notice_sent(Serial(9));
    assert!(!exclusive.answered(A, Serial(7)));
    assert!(exclusive.answered(A, Serial(9)));
}

#[test]
fn a_holder_that_does_not_answer_is_expelled_and_expires_after_a_term() {
    let mut exclusive = recalling();
    let (over, expelled) = pass(&mut exclusive, 60, |exclusive, now, _| exclusive.renew(now, A));
    let answer = ANSWER.as_secs();
    assert_eq!((over, expelled), (Some(answer + (TERM + MARGIN).as_secs()), Some(answer)));
}

#[test]
fn an_expelled_holder_that_reconnects_gains_no_time() {
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
fn a_holder_that_makes_progress_gets_more_time_but_not_forever() {
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
fn changes_of_other_holders_are_no_progress() {
    let mut exclusive = recalling();
    let (_, expelled) = pass(&mut exclusive, 60, |exclusive, now, _| {
        exclusive.renew(now, A);
        exclusive.progressed(now, B);
    });
    assert_eq!(expelled, Some(ANSWER.as_secs()));
}

#[test]
fn a_holder_that_wakes_up_gets_new_time_to_answer() {
    let mut exclusive = recalling();
    let (over, expelled) = pass(&mut exclusive, 40, |exclusive, now, second| {
        if second >= 12 {
            exclusive.renew(now, A);
        }
    });
    assert_eq!((over, expelled), (None, Some(12 + ANSWER.as_secs())));
}

#[test]
fn the_recall_does_not_wait_for_a_released_holder() {
    let mut exclusive = recalling();
    exclusive.release(B);
    assert!(exclusive.is_recalling());
    exclusive.release(A);
    assert!(exclusive.is_shared());
    let mut exclusive = exclusive_to_a();
    exclusive.release(A);
    assert!(!exclusive.is_shared(), "no other session is waiting yet");
    assert!(exclusive.recall(BEGIN), "a holder that resumes must not consider itself exclusive");
    assert_eq!(exclusive.tick(BEGIN), ExclusiveOutcome::Shared);
}

#[test]
fn an_answer_to_the_grant_releases_even_after_a_recall_started() {
    let mut exclusive = ExclusiveSession::new(LeaseConfig::default());
    exclusive.grant(BEGIN, A);
    exclusive.notice_sent(Serial(3));
    assert!(!exclusive.answered(A, Serial(2)) && !exclusive.answered(B, Serial(3)));
    assert!(exclusive.answered(A, Serial(3)));
    assert!(!exclusive.is_shared(), "no other session is waiting yet");
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
fn a_message_after_a_release_makes_the_recall_wait() {
    let mut exclusive = exclusive_to_a();
    exclusive.release(A);
    exclusive.renew(BEGIN, A);
    assert!(exclusive.recall(BEGIN));
    assert_eq!(exclusive.tick(BEGIN), ExclusiveOutcome::Stays);
}

#[test]
fn messages_of_other_holders_do_not_affect_the_exclusive_session() {
    let mut exclusive = recalling();
    exclusive.end(B);
    exclusive.disconnected(B);
    exclusive.reconnected(BEGIN, B);
    assert!(exclusive.is_connected() && exclusive.is_recalling());
    exclusive.end(A);
    assert!(exclusive.is_shared());
}
