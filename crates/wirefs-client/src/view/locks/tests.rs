mod property;

use super::*;
use crate::call::{CallId, Handle};

const ONE: u64 = 1;
const OTHER: u64 = 2;
const HANDLE: Handle = Handle(1);
const START: Time = Time(1_000_000_000);

pub(super) fn range(kind: LockKind, start: u64, end: u64) -> LockRange {
    LockRange { kind, start, end, pid: 0 }
}

fn lock(owner: u64, kind: LockKind, start: u64, end: u64) -> Asked {
    Asked::Lock { call: CallId(9), handle: HANDLE, owner, range: range(kind, start, end), waits: false }
}

fn unlock(owner: u64, start: u64, end: u64) -> Asked {
    Asked::Unlock { handle: HANDLE, owner, range: range(LockKind::Unlock, start, end) }
}

fn test(owner: u64, kind: LockKind, start: u64, end: u64) -> Asked {
    Asked::Test { call: CallId(9), handle: HANDLE, owner, range: range(kind, start, end) }
}

const GRANTED: Step = Step::Granted(CallId(9));

/// The range requested from the server, which must be the whole file.
fn delegates(step: Step) -> LockKind {
    match step {
        Step::Delegate { whole, .. } if (whole.start, whole.end) == (0, u64::MAX) => whole.kind,
        step => panic!("{step:?}"),
    }
}

/// A file that is delegated to `ONE`, which holds byte 5.
fn delegated(kind: LockKind) -> FileLocks {
    let mut file = FileLocks::default();
    assert_eq!(delegates(file.ask(START, true, lock(ONE, kind, 5, 5))), kind);
    file.delegated(START, Some(range(kind, 5, 5)));
    file
}

#[test]
fn locks_of_one_owner_are_answered_locally_while_the_file_is_delegated() {
    let mut file = delegated(LockKind::Write);
    for asked in [lock(ONE, LockKind::Read, 0, 99), lock(ONE, LockKind::Write, 50, u64::MAX)] {
        assert_eq!(file.ask(START, true, asked), GRANTED);
    }
    assert_eq!(file.ask(START, true, unlock(ONE, 0, u64::MAX)), Step::Released);
    assert_eq!(file.ask(START, true, lock(ONE, LockKind::Write, 7, 7)), GRANTED);
    let found = file.ask(START, true, test(ONE, LockKind::Write, 0, 99));
    assert_eq!(found, Step::Found(CallId(9), None));
    assert_eq!(file.take_reductions(), []);
}

#[test]
fn readers_get_a_shared_delegation_that_the_first_writer_makes_exclusive() {
    let mut file = delegated(LockKind::Read);
    assert_eq!(file.ask(START, true, lock(ONE, LockKind::Read, 0, 99)), GRANTED);
    assert_eq!(delegates(file.ask(START, true, lock(ONE, LockKind::Write, 7, 7))), LockKind::Write);
    assert_eq!(file.ask(START, true, test(ONE, LockKind::Read, 0, 9)), Step::Waits);
    file.delegated(START, Some(range(LockKind::Write, 7, 7)));
    assert_eq!(file.next_queued(), Some(test(ONE, LockKind::Read, 0, 9)));
    // A writer of late is delegated an exclusive lock at once.
    assert_eq!(file.ask(START, true, unlock(ONE, 0, u64::MAX)), Step::Released);
    file.pass(START + IDLE);
    assert_eq!(file.take_reductions(), [(ONE, range(LockKind::Unlock, 0, u64::MAX))]);
    assert_eq!(delegates(file.ask(START + IDLE, true, lock(ONE, LockKind::Read, 0, 9))), LockKind::Write);
}

#[test]
fn what_is_let_go_of_is_all_but_what_is_held() {
    let mut file = delegated(LockKind::Write);
    assert_eq!(file.ask(START, true, lock(ONE, LockKind::Read, 10, 19)), GRANTED);
    file.reduce();
    let told: Vec<_> = file.take_reductions().into_iter().map(|(_, range)| range).collect();
    let gaps =
        [range(LockKind::Unlock, 0, 4), range(LockKind::Unlock, 6, 9), range(LockKind::Unlock, 20, u64::MAX)];
    assert_eq!(told.first(), Some(&range(LockKind::Read, 10, 19)), "{told:?}");
    assert_eq!(told[1..], gaps);
    file.reduce();
    assert_eq!(file.take_reductions(), []);
}

#[test]
fn held_locks_refuse_another_local_program_and_delegations_do_not() {
    let mut file = delegated(LockKind::Write);
    let refused = Step::Refused(CallId(9), Refusal::Held);
    assert_eq!(file.ask(START, true, lock(OTHER, LockKind::Read, 0, 9)), refused);
    let found = file.ask(START, true, test(OTHER, LockKind::Read, 0, 9));
    assert_eq!(found, Step::Found(CallId(9), Some(range(LockKind::Write, 5, 5))));
    assert_eq!(file.ask(START, true, test(OTHER, LockKind::Write, 6, 9)), Step::Found(CallId(9), None));
    // What is free it gets from the server, which has of the first one by then just what that holds.
    let asked = lock(OTHER, LockKind::Write, 6, 9);
    assert_eq!(file.ask(START, true, asked), Step::Ask(asked));
    let told = file.take_reductions();
    assert_eq!(told, [(ONE, range(LockKind::Unlock, 0, 4)), (ONE, range(LockKind::Unlock, 6, u64::MAX))]);
    // Two that hold something are the server's business.
    file.asked(CallId(9), Some(range(LockKind::Write, 6, 9)), true);
    let asked = lock(ONE, LockKind::Write, 20, 20);
    assert_eq!(file.ask(START, true, asked), Step::Ask(asked));
    file.asked(CallId(9), None, true);
    // Until one is left, where there was a writer of late.
    assert_eq!(file.ask(START, true, unlock(ONE, 0, u64::MAX)), Step::Ask(unlock(ONE, 0, u64::MAX)));
    assert_eq!(delegates(file.ask(START, true, lock(OTHER, LockKind::Read, 0, 0))), LockKind::Write);
}

#[test]
fn unlocked_file_is_delegated_to_the_next_caller() {
    let mut file = delegated(LockKind::Read);
    assert_eq!(file.ask(START, true, unlock(ONE, 5, 5)), Step::Released);
    assert_eq!(delegates(file.ask(START, true, lock(OTHER, LockKind::Write, 1, 1))), LockKind::Write);
    assert_eq!(file.take_reductions(), [(ONE, range(LockKind::Unlock, 0, u64::MAX))]);
}

#[test]
fn refused_delegation_is_followed_by_requests_for_the_range_alone() {
    let mut file = FileLocks::default();
    let asked = lock(ONE, LockKind::Write, 5, 5);
    delegates(file.ask(START, true, asked));
    assert_eq!(file.not_delegated(START, true, Some(asked)), Some(Step::Ask(asked)));
    assert_eq!(file.take_reductions(), []);
    file.asked(CallId(9), Some(range(LockKind::Write, 5, 5)), true);
    let next = lock(ONE, LockKind::Write, 6, 6);
    assert_eq!(file.ask(START, true, next), Step::Ask(next));
    file.asked(CallId(9), None, true);
    assert_eq!(delegates(file.ask(START + REFUSED_FOR, true, next)), LockKind::Write);
}

#[test]
fn delegation_of_unknown_outcome_is_released() {
    let mut file = FileLocks::default();
    let asked = lock(ONE, LockKind::Write, 5, 5);
    delegates(file.ask(START, true, asked));
    file.not_delegated(START, false, None);
    assert_eq!(file.take_reductions(), [(ONE, range(LockKind::Unlock, 0, u64::MAX))]);
}

#[test]
fn programs_at_the_server_wait_no_longer_than_for_the_end_of_a_few_seconds() {
    let mut file = delegated(LockKind::Write);
    let mut now = START;
    // Somebody who locks all the time and holds nothing now and then.
    while file.take_reductions().is_empty() {
        assert_eq!(file.ask(now, true, lock(ONE, LockKind::Write, 7, 7)), GRANTED);
        file.pass(now);
        assert_eq!(file.ask(now, true, unlock(ONE, 0, u64::MAX)), Step::Released);
        now = now + Duration::from_millis(10);
        assert!(now <= START + DELEGATED_FOR + Duration::from_millis(20));
    }
    let asked = lock(ONE, LockKind::Write, 7, 7);
    assert_eq!(file.ask(now, true, asked), Step::Ask(asked), "others get a turn");
    // Somebody who never lets go.
    let mut file = delegated(LockKind::Write);
    let mut now = START;
    while file.take_reductions().is_empty() {
        assert_eq!(file.ask(now, true, lock(ONE, LockKind::Write, 7, 7)), GRANTED);
        now = now + Duration::from_millis(100);
        file.pass(now);
        assert!(now <= START + DELEGATED_FOR + IDLE);
    }
}

#[test]
fn flock_is_never_delegated_as_another_kind() {
    let mut file = FileLocks::of(true);
    let all = |kind| lock(ONE, kind, 0, u64::MAX);
    assert_eq!(delegates(file.ask(START, true, all(LockKind::Write))), LockKind::Write);
    file.delegated(START, Some(range(LockKind::Write, 0, u64::MAX)));
    assert_eq!(file.ask(START, true, unlock(ONE, 0, u64::MAX)), Step::Released);
    assert_eq!(file.ask(START, true, all(LockKind::Write)), GRANTED);
    assert_eq!(delegates(file.ask(START, true, all(LockKind::Read))), LockKind::Read);
}

#[test]
fn what_a_server_that_was_started_again_does_not_have_is_not_held() {
    let mut file = delegated(LockKind::Write);
    file.forget_held();
    file.reduce();
    assert_eq!(file.take_reductions(), []);
    assert_eq!(delegates(file.ask(START, true, lock(OTHER, LockKind::Write, 5, 5))), LockKind::Write);
}
