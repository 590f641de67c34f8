//! How long changes wait for a holder.

use super::{A, B, Bench, DIR, F, G, JobKey, id, named, recall, retry, whole};
use crate::grantor::{Grantor, GrantorOutput, JoinOutcome, LeaseConfig, TouchOutcome};
use crate::limits::{ANSWER, ANSWER_MAX, MARGIN, PENALTY, REMOVE_AFTER, TERM};
use crate::recall::LeaseItem;
use std::time::Duration;
use wirefs_op::Time;

/// `A` has a lease on `F`, job 1 of `B` is about to change it, and recall 1 was sent to `A`.
fn waiting() -> Bench {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])]);
    bench
}

#[test]
fn changes_wait_for_a_silent_holder_until_its_leases_expire() {
    let mut bench = waiting();
    assert_eq!(bench.grantor.deadline(), Some(Time(0) + TERM + MARGIN));
    bench.pass(19, &[B]);
    assert_eq!(bench.outputs(), []);
    bench.pass(1, &[B]);
    assert_eq!(bench.outputs(), [retry(1)]);
}

#[test]
fn changes_do_not_wait_for_a_fenced_holder_which_gets_missed_recalls_later() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grant(A, DIR);
    bench.grant(A, G);
    bench.pass(20, &[B]);
    bench.change(1, B, &[whole(F)]);
    bench.change(2, B, &[named(DIR, "x")]);
    assert_eq!((bench.outputs(), bench.read(A, &[G])), (vec![], vec![false]));
    bench.grantor.renew(bench.now, A);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::named(DIR, "x"), LeaseItem::whole(F)])]);
    assert_eq!(bench.touch(3, B, &[whole(F)]), TouchOutcome::Clear, "no change waits for the missed recall");
    assert_eq!(bench.touch(4, B, &[whole(G)]), TouchOutcome::Parked, "its leases are valid again");
    assert_eq!(bench.outputs(), [recall(A, 2, &[LeaseItem::whole(G)])]);
    bench.recalled(A, 1);
    bench.recalled(A, 2);
    assert_eq!(bench.outputs(), [retry(4)]);
}

#[test]
fn changes_do_not_wait_for_a_holder_that_released_its_leases() {
    let mut bench = waiting();
    bench.grant(A, G);
    bench.grantor.release_all(A);
    assert_eq!(bench.outputs(), [retry(1)], "it does not use recalled leases");
    bench.change(2, B, &[whole(G)]);
    assert_eq!(bench.outputs(), []);
    bench.grantor.renew(bench.now, A);
    assert_eq!(bench.outputs(), [recall(A, 2, &[LeaseItem::whole(G)])]);
}

#[test]
fn a_holder_that_does_not_answer_is_expelled_and_changes_wait_until_its_leases_expire() {
    let mut bench = waiting();
    bench.pass(9, &[A, B]);
    assert_eq!(bench.outputs(), []);
    bench.pass(1, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    assert_eq!(
        bench.touch(2, B, &[whole(F)]),
        TouchOutcome::Parked,
        "it may not have noticed the closed connection"
    );
    // Messages from an expelled holder, before its connection is closed, do not extend its leases.
    bench.pass(19, &[A, B]);
    assert_eq!((bench.outputs(), bench.grantor.is_idle()), (vec![], false));
    bench.pass(1, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::HolderRemoved(A), retry(1), retry(2)]);
    assert_eq!(bench.join(A), JoinOutcome::Fresh);
}

#[test]
fn changes_wait_for_the_other_leases_of_an_expelled_holder_too() {
    let mut bench = waiting();
    bench.grant(A, G);
    bench.pass(10, &[A, B]);
    bench.outputs();
    assert_eq!(bench.touch(2, B, &[whole(G)]), TouchOutcome::Parked);
    assert_eq!(bench.touch(3, B, &[whole(id(99))]), TouchOutcome::Clear);
    bench.pass(20, &[B]);
    assert_eq!(bench.outputs(), [GrantorOutput::HolderRemoved(A), retry(1), retry(2)]);
}

#[test]
fn changes_stop_waiting_for_an_expelled_holder_that_reconnects_and_answers() {
    let mut bench = waiting();
    bench.pass(10, &[A, B]);
    bench.outputs();
    bench.grantor.disconnected(bench.now, A);
    assert_eq!(bench.join(A), JoinOutcome::Fresh);
    assert_eq!(bench.outputs(), [recall(A, 2, &[])]);
    assert_eq!(bench.read(A, &[G]), [false], "it invalidates everything first");
    bench.recalled(A, 2);
    assert_eq!(bench.outputs(), [retry(1)]);
    bench.pass(PENALTY.as_secs(), &[A, B]);
    bench.grant(A, G);
    bench.pass(30, &[A, B]);
    assert_eq!((bench.outputs(), bench.grantor.is_leased(G)), (vec![], true), "it is not removed later");
}

#[test]
fn repeated_reconnects_without_an_answer_do_not_delay_changes() {
    let mut bench = waiting();
    for round in 0..8 {
        bench.pass(9, &[A, B]);
        if bench.outputs().contains(&retry(1)) {
            assert!(round < 7);
            return;
        }
        bench.grantor.disconnected(bench.now, A);
        bench.join(A);
        bench.grantor.renew(bench.now, A);
        bench.outputs();
    }
    panic!("the change waits since {:?}", bench.now);
}

#[test]
fn a_second_expulsion_does_not_extend_the_wait() {
    let mut bench = waiting();
    bench.pass(10, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    bench.join(A);
    assert_eq!(bench.outputs(), [recall(A, 2, &[])]);
    bench.pass(10, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    bench.pass(10, &[B]);
    assert_eq!(bench.outputs(), [retry(1)]);
    bench.pass(10, &[B]);
    assert_eq!(bench.outputs(), [GrantorOutput::HolderRemoved(A)]);
}

#[test]
fn changes_wait_for_a_holder_expelled_during_a_recall_of_everything() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grantor.recall_everything(bench.now);
    bench.outputs();
    bench.pass(10, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked);
    bench.pass(20, &[B]);
    assert_eq!(bench.outputs(), [GrantorOutput::HolderRemoved(A), retry(1)]);
}

#[test]
fn a_holder_silent_for_a_while_gets_time_to_answer_but_not_forever() {
    let mut bench = waiting();
    bench.pass(1, &[A, B]);
    bench.pass(12, &[B]);
    bench.grantor.renew(bench.now, A);
    bench.pass(9, &[A, B]);
    assert_eq!(bench.outputs(), [], "its answer may be in transit");
    bench.pass(1, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);

    let mut bench = waiting();
    let mut seconds = 0;
    while bench.outputs().is_empty() {
        bench.pass(8, &[B]);
        bench.pass(1, &[A, B]);
        seconds += 9;
        assert!(seconds <= ANSWER_MAX.as_secs() + 9, "{seconds} seconds");
    }
    assert!(seconds > 2 * ANSWER.as_secs());
}

#[test]
fn a_holder_silent_at_its_deadline_is_fenced_instead_of_expelled() {
    let mut bench = waiting();
    bench.pass(1, &[A, B]);
    bench.pass(19, &[B]);
    assert_eq!(bench.outputs(), []);
    bench.pass(1, &[B]);
    assert_eq!(bench.outputs(), [retry(1)]);
    bench.grantor.disconnected(bench.now, A);
    assert_eq!(bench.join(A), JoinOutcome::Retained);
    assert_eq!(bench.outputs(), [recall(A, 2, &[LeaseItem::whole(F)])]);
}

#[test]
fn the_answer_timeout_of_a_fenced_holder_restarts_with_its_next_message() {
    let mut bench = waiting();
    bench.pass(25, &[B]);
    bench.pass(10, &[A, B]);
    assert_eq!(bench.outputs(), [retry(1)], "no change waited for the answer, so it is not expelled");
    bench.pass(1, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
}

#[test]
fn a_silent_holder_is_removed_after_a_day() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    bench.grantor.disconnected(bench.now, A);
    bench.pass(20, &[]);
    assert_eq!(bench.grantor.deadline(), Some(Time(0) + REMOVE_AFTER));
    bench.now = Time(0) + (REMOVE_AFTER - Duration::from_secs(1));
    bench.grantor.tick(bench.now);
    assert_eq!((bench.outputs(), bench.grantor.holders()), (vec![], 1));
    bench.pass(1, &[]);
    assert_eq!((bench.outputs(), bench.grantor.holders()), (vec![GrantorOutput::HolderRemoved(A)], 0));
    assert_eq!(bench.join(A), JoinOutcome::Fresh);
}

#[test]
fn a_silent_connected_holder_is_expelled_before_it_is_removed() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    bench.now = Time(0) + REMOVE_AFTER;
    bench.grantor.tick(bench.now);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    bench.pass(20, &[]);
    assert_eq!(bench.outputs(), [GrantorOutput::HolderRemoved(A)]);
}

#[test]
fn changes_do_not_wait_for_a_removed_holder() {
    let mut bench = waiting();
    bench.grantor.remove(A);
    assert_eq!(bench.outputs(), [retry(1)]);
    bench.change(1, B, &[whole(F)]);
    assert_eq!((bench.grantor.holders(), bench.grantor.leased_objects()), (1, 0));
}

#[test]
fn a_new_holder_with_a_reused_key_is_not_waited_for() {
    let mut bench = Bench::new(&[]);
    bench.grantor = Grantor::new(LeaseConfig::default(), Some(Time(0) + TERM + MARGIN));
    bench.join(A);
    bench.grant(A, F);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked);
    bench.grantor.remove(A);
    bench.join(A);
    bench.pass(20, &[A]);
    assert_eq!(bench.outputs(), [retry(1)]);
}

#[test]
fn a_new_holder_with_a_reused_key_has_no_leases() {
    let mut bench = waiting();
    assert_eq!(bench.touch(2, A, &[whole(G)]), TouchOutcome::Clear);
    bench.grantor.remove(A);
    bench.join(A);
    bench.grantor.renew(bench.now, A);
    assert_eq!(bench.read(A, &[G]), [false], "the change belongs to the removed holder");
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.read(A, &[G]), [true]);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Clear);
}
