//! What programs on the server change.

use super::{A, B, Bench, Bytes, DIR, F, G, named, recall, retry, whole};
use crate::grantor::{GrantorOutput, JobKey, TouchOutcome};
use crate::limits::ATTRIBUTION_SPAN;
use crate::recall::LeaseItem;

fn x() -> Bytes {
    Bytes::from_static(b"x")
}

#[test]
fn all_who_know_it_are_told_and_nobody_waits() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grant(B, DIR);
    bench.grantor.external_change(bench.now, F, None, Some(5));
    bench.grantor.external_change(bench.now, DIR, Some(&x()), None);
    assert_eq!(
        bench.outputs(),
        [recall(A, 1, &[LeaseItem::whole(F)]), recall(B, 1, &[LeaseItem::named(DIR, x())])]
    );
    assert!(!bench.grantor.is_leased(F) && bench.grantor.is_leased(DIR));
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked, "A may not have forgotten it yet");
    bench.recalled(A, 1);
    assert_eq!(bench.outputs(), [retry(1)]);
}

#[test]
fn what_was_read_before_is_not_granted_after() {
    let mut bench = Bench::new(&[A]);
    bench.grantor.begin(JobKey(1));
    bench.grantor.external_change(bench.now, F, None, None);
    assert_eq!(bench.grantor.grant(bench.now, JobKey(1), A, &[F, G]), [false, true]);
    bench.grant(A, F);
}

#[test]
fn own_changes_are_recognised() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    assert_eq!(bench.touch(1, A, &[whole(F)]), TouchOutcome::Clear);
    bench.grantor.own_change(bench.now, F, None, Some(4), Some(5));
    bench.grantor.external_change(bench.now, F, None, Some(5));
    bench.grantor.end(JobKey(1));
    bench.grantor.external_change(bench.now, F, None, Some(5));
    assert_eq!(bench.outputs(), []);
    bench.grantor.external_change(bench.now, F, None, Some(6));
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])]);
}

#[test]
fn what_may_be_an_own_change_under_way_is_looked_at_again_when_it_is_over() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, DIR);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    // Seen in the middle of it.
    bench.grantor.external_change(bench.now, DIR, Some(&x()), Some(7));
    bench.grantor.external_change(bench.now, DIR, Some(&x()), Some(7));
    assert_eq!(bench.outputs(), []);
    bench.grantor.own_change(bench.now, DIR, Some(&x()), Some(4), Some(5));
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), [GrantorOutput::Verify(LeaseItem::named(DIR, x()))], "once");
    bench.grantor.external_change(bench.now, DIR, Some(&x()), Some(5));
    assert_eq!(bench.outputs(), [], "it was the own one");
    bench.grantor.external_change(bench.now, DIR, Some(&x()), Some(6));
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::named(DIR, x())])]);
}

// S-154
#[test]
fn a_name_that_is_reported_without_a_version_is_not_an_own_change_and_is_recalled_at_once() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, DIR);
    assert_eq!(bench.touch(1, A, &[named(DIR, "y")]), TouchOutcome::Clear);
    bench.grantor.external_change(bench.now, DIR, Some(&x()), None);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::named(DIR, x())])]);
}

#[test]
fn what_was_reported_at_the_version_that_the_own_change_left_needs_no_second_look() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, DIR);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    bench.grantor.external_change(bench.now, DIR, Some(&x()), Some(5));
    bench.grantor.own_change(bench.now, DIR, Some(&x()), Some(4), Some(5));
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), []);
}

#[test]
fn a_change_that_waits_puts_no_report_off() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(B, F);
    assert_eq!(bench.touch(2, A, &[whole(F)]), TouchOutcome::Parked);
    bench.outputs();
    bench.grant(A, G);
    bench.grantor.external_change(bench.now, F, None, Some(5));
    bench.recalled(B, 1);
    assert_eq!(bench.outputs(), [retry(2)]);
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.outputs(), []);
}

/// A job of A changes the name x of DIR after one of the name y; a report comes of y.
fn report_of_another_name(version: u64) -> (Bench, Bytes) {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, DIR);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    let y = Bytes::from_static(b"y");
    bench.grantor.own_change(bench.now, DIR, Some(&y), Some(3), Some(4));
    bench.grantor.external_change(bench.now, DIR, Some(&y), Some(version));
    assert_eq!(bench.outputs(), [], "which version the job leaves is not known yet");
    bench.grantor.own_change(bench.now, DIR, Some(&x()), Some(4), Some(5));
    (bench, y)
}

#[test]
fn a_report_of_another_name_at_the_version_that_a_job_under_way_leaves_is_of_own_changes() {
    let (mut bench, _) = report_of_another_name(5);
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), []);
}

#[test]
fn a_report_of_another_name_that_no_own_change_explains_is_told_after_the_job() {
    let (mut bench, y) = report_of_another_name(6);
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), [GrantorOutput::Verify(LeaseItem::named(DIR, y.clone()))]);
    assert_eq!(bench.touch(2, A, &[named(DIR, "z")]), TouchOutcome::Clear);
    bench.grantor.external_change(bench.now, DIR, Some(&y), Some(7));
    bench.grantor.end(JobKey(2));
    assert_eq!(
        bench.outputs(),
        [GrantorOutput::Verify(LeaseItem::named(DIR, y.clone()))],
        "it may have been that one"
    );
    bench.grantor.external_change(bench.now, DIR, Some(&y), Some(7));
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::named(DIR, y)])]);
}

#[test]
fn jobs_that_follow_each_other_keep_nobody_from_being_told() {
    let (mut bench, y) = report_of_another_name(6);
    let looks_at = bench.now + ATTRIBUTION_SPAN;
    assert_eq!(bench.grantor.deadline(), Some(looks_at));
    bench.now = looks_at;
    bench.grantor.tick(bench.now);
    bench.grantor.tick(bench.now);
    assert_eq!(bench.outputs(), [GrantorOutput::Verify(LeaseItem::named(DIR, y.clone()))], "once");
    bench.grantor.external_change(bench.now, DIR, Some(&y), Some(7));
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::named(DIR, y)])], "though the job goes on");
}

#[test]
fn the_end_of_an_object_by_an_own_change_is_nobody_elses() {
    let mut bench = Bench::new(&[A]);
    for (job, object, is_own) in [(1, F, true), (2, G, false)] {
        bench.grant(A, object);
        assert_eq!(bench.touch(job, A, &[whole(object)]), TouchOutcome::Clear);
        let after = (!is_own).then_some(3);
        bench.grantor.own_change(bench.now, object, None, Some(2), after);
        bench.grantor.end(JobKey(job));
        bench.grantor.external_change(bench.now, object, None, None);
        assert_eq!(bench.outputs().is_empty(), is_own);
    }
}

#[test]
fn everything_is_recalled_from_everybody() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grantor.begin(JobKey(1));
    bench.grantor.recall_everything(bench.now);
    bench.grantor.recall_everything(bench.now);
    assert_eq!(bench.outputs(), [recall(A, 1, &[])], "who has nothing is told nothing, and nobody twice");
    assert_eq!(bench.grantor.grant(bench.now, JobKey(1), B, &[G]), [false], "that may have changed too");
    assert_eq!((bench.read(A, &[G]), bench.read(B, &[G])), (vec![false], vec![true]));
    assert_eq!(bench.touch(2, B, &[whole(F)]), TouchOutcome::Parked);
    assert!(!bench.grantor.is_idle());
    bench.recalled(A, 1);
    assert_eq!(bench.outputs(), [retry(2)]);
    bench.grant(A, G);
}

#[test]
fn a_server_is_idle_when_nobody_may_believe_anything() {
    let mut bench = Bench::new(&[A, B]);
    assert!(bench.grantor.is_idle());
    bench.grant(A, F);
    bench.grant(B, F);
    assert!(!bench.grantor.is_idle());
    bench.grantor.recall_everything(bench.now);
    bench.outputs();
    assert!(!bench.grantor.is_idle());
    bench.recalled(A, 1);
    assert!(!bench.grantor.is_idle());
    bench.pass(20, &[]);
    assert!(bench.grantor.is_idle(), "one has answered, the other's leases have run out");
}
