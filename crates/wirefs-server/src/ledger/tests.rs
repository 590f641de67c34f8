use super::{Ledger, StrayNumber, Verdict};
use wirefs_lease::JobKey;
use wirefs_op::limits::LEDGER_MAX;
use wirefs_op::message::error::Rerror;
use wirefs_op::{Errno, Reply};

fn reply(errno: Errno) -> Reply {
    Reply::Error(Rerror::from(errno))
}

#[test]
fn a_change_is_new_then_in_progress_then_done() {
    let mut ledger = Ledger::default();
    ledger.answered(5, 5).unwrap();
    assert_eq!(ledger.take(5, JobKey(1), 0), Ok(Verdict::New));
    assert_eq!(ledger.take(5, JobKey(2), 0), Ok(Verdict::InProgress(JobKey(1))));
    ledger.done(5, &reply(Errno::Exists), None);
    assert_eq!(ledger.take(5, JobKey(3), 0), Ok(Verdict::Done(Box::new(reply(Errno::Exists)))));
}

#[test]
fn acknowledged_replies_are_removed_and_cannot_be_requested() {
    let mut ledger = Ledger::default();
    for number in 0..10 {
        ledger.take(number, JobKey(number), 0).unwrap();
        ledger.done(number, &reply(Errno::Io), None);
    }
    ledger.answered(4, 10).unwrap();
    assert_eq!(ledger.entries.len(), 6);
    assert_eq!(ledger.take(3, JobKey(11), 0), Err(StrayNumber));
    assert_eq!(ledger.answered(3, 10), Err(StrayNumber), "the acknowledgment cannot be taken back");
    assert_eq!(ledger.answered(11, 10), Err(StrayNumber), "a later change has no reply yet");
}

#[test]
fn numbers_may_be_skipped_but_not_used_later() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.take(1, JobKey(1), 0), Ok(Verdict::New));
    assert_eq!(ledger.take(4, JobKey(2), 0), Ok(Verdict::New));
    assert_eq!(ledger.take(3, JobKey(3), 0), Err(StrayNumber));
}

#[test]
fn an_acknowledged_change_is_not_kept() {
    let mut ledger = Ledger::default();
    ledger.take(0, JobKey(1), 0).unwrap();
    ledger.answered(1, 1).unwrap();
    ledger.done(0, &reply(Errno::Io), None);
    assert!(ledger.entries.is_empty());
}

#[test]
fn entries_are_bounded() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.take(LEDGER_MAX - 1, JobKey(1), 0), Ok(Verdict::New));
    assert_eq!(ledger.take(LEDGER_MAX, JobKey(2), 0), Err(StrayNumber));
    assert_eq!(ledger.answered(0, u64::MAX), Err(StrayNumber));
    ledger.answered(1, LEDGER_MAX).unwrap();
    assert_eq!(ledger.take(LEDGER_MAX, JobKey(2), 0), Ok(Verdict::New));
    assert_eq!(ledger.answered(u64::MAX, u64::MAX), Err(StrayNumber), "there is no number after it");
}
