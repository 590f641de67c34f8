//! How long is waited for holders.

use super::{A, B, Bench, DIR, F, G, JobKey, id, named, recall, retry, whole};
use crate::grantor::{Grantor, GrantorOutput, JoinOutcome, LeaseConfig, TouchOutcome};
use crate::limits::{ANSWER, ANSWER_MAX, MARGIN, REMOVE_AFTER, TERM};
use crate::recall::LeaseItem;
use std::time::Duration;
use wirefs_op::Time;

/// `F` is known to `A`, and job 1 of `B` wants to change it; `A` was told with serial 1.
fn waiting() -> Bench {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])]);
    bench
}

#[test]
fn a_silent_holder_is_waited_for_until_its_leases_have_run_out() {
    let mut bench = waiting();
    assert_eq!(bench.grantor.deadline(), Some(Time(0) + TERM + MARGIN));
    bench.pass(19, &[B]);
    assert_eq!(bench.outputs(), []);
    bench.pass(1, &[B]);
    assert_eq!(bench.outputs(), [retry(1)]);
}

#[test]
fn a_fenced_holder_is_not_waited_for_and_told_when_it_is_heard_again() {
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
    assert_eq!(bench.touch(3, B, &[whole(F)]), TouchOutcome::Clear, "nobody waits for what it had missed");
    assert_eq!(bench.touch(4, B, &[whole(G)]), TouchOutcome::Parked, "what it contains counts again");
    assert_eq!(bench.outputs(), [recall(A, 2, &[LeaseItem::whole(G)])]);
    bench.recalled(A, 1);
    bench.recalled(A, 2);
    assert_eq!(bench.outputs(), [retry(4)]);
}

#[test]
fn a_holder_that_rests_is_not_waited_for_and_told_when_it_is_heard_again() {
    let mut bench = waiting();
    bench.grant(A, G);
    bench.grantor.release_all(A);
    assert_eq!(bench.outputs(), [retry(1)], "what it was told to forget it does not believe");
    bench.change(2, B, &[whole(G)]);
    assert_eq!(bench.outputs(), []);
    bench.grantor.renew(bench.now, A);
    assert_eq!(bench.outputs(), [recall(A, 2, &[LeaseItem::whole(G)])]);
}

#[test]
fn a_holder_that_is_heard_but_does_not_answer_is_expelled_and_waited_for_until_its_leases_have_run_out() {
    let mut bench = waiting();
    bench.pass(9, &[A, B]);
    assert_eq!(bench.outputs(), []);
    bench.pass(1, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    assert_eq!(bench.touch(2, B, &[whole(F)]), TouchOutcome::Parked, "it may not have noticed");
    // What comes from it until its connection is closed does not put it off.
    bench.pass(19, &[A, B]);
    assert_eq!((bench.outputs(), bench.grantor.is_idle()), (vec![], false));
    bench.pass(1, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::HolderRemoved(A), retry(1), retry(2)]);
    assert_eq!(bench.grantor.join(bench.now, A), JoinOutcome::Fresh);
}

#[test]
fn what_else_the_expelled_knows_is_waited_for_too() {
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
fn an_expelled_holder_that_comes_back_and_forgets_is_not_waited_for_longer() {
    let mut bench = waiting();
    bench.pass(10, &[A, B]);
    bench.outputs();
    bench.grantor.disconnected(bench.now, A);
    assert_eq!(bench.grantor.join(bench.now, A), JoinOutcome::Fresh);
    assert_eq!(bench.outputs(), [recall(A, 2, &[])]);
    assert_eq!(bench.read(A, &[G]), [false], "it forgets everything first");
    bench.recalled(A, 2);
    assert_eq!(bench.outputs(), [retry(1)]);
    bench.grant(A, G);
    bench.pass(30, &[A, B]);
    assert_eq!((bench.outputs(), bench.grantor.is_leased(G)), (vec![], true), "it is not forgotten later");
}

#[test]
fn who_comes_back_again_and_again_without_an_answer_holds_nobody_up() {
    let mut bench = waiting();
    for round in 0..8 {
        bench.pass(9, &[A, B]);
        if bench.outputs().contains(&retry(1)) {
            assert!(round < 7);
            return;
        }
        bench.grantor.disconnected(bench.now, A);
        bench.grantor.join(bench.now, A);
        bench.grantor.renew(bench.now, A);
        bench.outputs();
    }
    panic!("the change waits since {:?}", bench.now);
}

#[test]
fn who_is_expelled_a_second_time_is_waited_for_no_longer_than_after_the_first() {
    let mut bench = waiting();
    bench.pass(10, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    bench.grantor.join(bench.now, A);
    assert_eq!(bench.outputs(), [recall(A, 2, &[])]);
    bench.pass(10, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    bench.pass(10, &[B]);
    assert_eq!(bench.outputs(), [retry(1)]);
    bench.pass(10, &[B]);
    assert_eq!(bench.outputs(), [GrantorOutput::HolderRemoved(A)]);
}

#[test]
fn who_is_expelled_while_it_forgets_everything_is_waited_for() {
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
fn who_was_silent_for_a_while_gets_time_to_answer_but_not_for_ever() {
    let mut bench = waiting();
    bench.pass(1, &[A, B]);
    bench.pass(12, &[B]);
    bench.grantor.renew(bench.now, A);
    bench.pass(9, &[A, B]);
    assert_eq!(bench.outputs(), [], "its answer may be on the way");
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
fn who_is_silent_when_its_time_is_over_is_fenced_and_not_expelled() {
    let mut bench = waiting();
    bench.pass(1, &[A, B]);
    bench.pass(19, &[B]);
    assert_eq!(bench.outputs(), []);
    bench.pass(1, &[B]);
    assert_eq!(bench.outputs(), [retry(1)]);
    bench.grantor.disconnected(bench.now, A);
    assert_eq!(bench.grantor.join(bench.now, A), JoinOutcome::Retained);
    assert_eq!(bench.outputs(), [recall(A, 2, &[LeaseItem::whole(F)])]);
}

#[test]
fn what_a_fenced_holder_did_not_answer_before_counts_from_when_it_is_heard_again() {
    let mut bench = waiting();
    bench.pass(25, &[B]);
    bench.pass(10, &[A, B]);
    assert_eq!(bench.outputs(), [retry(1)], "it is not expelled for what nobody waited for");
    bench.pass(1, &[A, B]);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
}

#[test]
fn a_silent_holder_is_forgotten_after_a_day() {
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
    assert_eq!(bench.grantor.join(bench.now, A), JoinOutcome::Fresh);
}

#[test]
fn a_silent_holder_whose_connection_stands_hears_of_it_before_it_is_forgotten() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    bench.now = Time(0) + REMOVE_AFTER;
    bench.grantor.tick(bench.now);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    bench.pass(20, &[]);
    assert_eq!(bench.outputs(), [GrantorOutput::HolderRemoved(A)]);
}

#[test]
fn a_holder_that_says_goodbye_is_not_waited_for() {
    let mut bench = waiting();
    bench.grantor.remove(A);
    assert_eq!(bench.outputs(), [retry(1)]);
    bench.change(1, B, &[whole(F)]);
    assert_eq!((bench.grantor.holders(), bench.grantor.leased_objects()), (1, 0));
}

#[test]
fn what_was_awaited_of_one_that_is_gone_is_not_awaited_of_who_joins_by_its_key() {
    let mut bench = Bench::new(&[]);
    bench.grantor = Grantor::new(LeaseConfig::default(), Some(Time(0) + TERM + MARGIN));
    bench.grantor.join(bench.now, A);
    bench.grant(A, F);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked);
    bench.grantor.remove(A);
    bench.grantor.join(bench.now, A);
    bench.pass(20, &[A]);
    assert_eq!(bench.outputs(), [retry(1)]);
}

#[test]
fn whoever_joins_by_the_key_of_one_that_is_gone_is_not_taken_for_it() {
    let mut bench = waiting();
    assert_eq!(bench.touch(2, A, &[whole(G)]), TouchOutcome::Clear);
    bench.grantor.remove(A);
    bench.grantor.join(bench.now, A);
    bench.grantor.renew(bench.now, A);
    assert_eq!(bench.read(A, &[G]), [false], "the change is of the one that is gone");
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.read(A, &[G]), [true]);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Clear);
}
