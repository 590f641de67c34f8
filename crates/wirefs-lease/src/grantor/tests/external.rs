//! Changes by programs on the server.

use super::{A, B, Bench, Bytes, DIR, F, G, named, recall, retry, whole};
use crate::grantor::{GrantorOutput, JobKey, TouchOutcome};
use crate::limits::ATTRIBUTION_SPAN;
use crate::recall::LeaseItem;

fn x() -> Bytes {
    Bytes::from_static(b"x")
}

#[test]
fn an_external_change_is_recalled_from_all_holders_without_waiting() {
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
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked, "A has not answered the recall");
    bench.recalled(A, 1);
    assert_eq!(bench.outputs(), [retry(1)]);
}

#[test]
fn data_read_before_an_external_change_is_not_granted_after() {
    let mut bench = Bench::new(&[A]);
    bench.grantor.begin(JobKey(1));
    bench.grantor.external_change(bench.now, F, None, None);
    assert_eq!(bench.grantor.grant(bench.now, JobKey(1), A, &[F, G]), [false, true]);
    bench.grant(A, F);
}

#[test]
fn own_changes_are_recognized() {
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
fn a_report_during_an_own_change_is_checked_again_at_its_end() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, DIR);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    // The watcher reports in the middle of the change.
    bench.grantor.external_change(bench.now, DIR, Some(&x()), Some(7));
    bench.grantor.external_change(bench.now, DIR, Some(&x()), Some(7));
    assert_eq!(bench.outputs(), []);
    bench.grantor.own_change(bench.now, DIR, Some(&x()), Some(4), Some(5));
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), [GrantorOutput::Verify(LeaseItem::named(DIR, x()))], "once");
    bench.grantor.external_change(bench.now, DIR, Some(&x()), Some(5));
    assert_eq!(bench.outputs(), [], "the own change explains it");
    bench.grantor.external_change(bench.now, DIR, Some(&x()), Some(6));
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::named(DIR, x())])]);
}

// S-52
#[test]
fn a_reported_name_without_a_version_is_recalled_immediately() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, DIR);
    assert_eq!(bench.touch(1, A, &[named(DIR, "y")]), TouchOutcome::Clear);
    bench.grantor.external_change(bench.now, DIR, Some(&x()), None);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::named(DIR, x())])]);
}

#[test]
fn a_report_at_the_version_of_the_own_change_needs_no_second_check() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, DIR);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    bench.grantor.external_change(bench.now, DIR, Some(&x()), Some(5));
    bench.grantor.own_change(bench.now, DIR, Some(&x()), Some(4), Some(5));
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), []);
}

#[test]
fn a_waiting_change_does_not_delay_reports() {
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

/// A job of A changes name x in DIR after a change of name y; then a report of y arrives.
fn report_of_another_name(version: u64) -> (Bench, Bytes) {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, DIR);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    let y = Bytes::from_static(b"y");
    bench.grantor.own_change(bench.now, DIR, Some(&y), Some(3), Some(4));
    bench.grantor.external_change(bench.now, DIR, Some(&y), Some(version));
    assert_eq!(bench.outputs(), [], "the version that the job leaves is unknown");
    bench.grantor.own_change(bench.now, DIR, Some(&x()), Some(4), Some(5));
    (bench, y)
}

#[test]
fn a_report_of_another_name_at_the_version_left_by_a_running_job_is_attributed_to_own_changes() {
    let (mut bench, _) = report_of_another_name(5);
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), []);
}

#[test]
fn a_report_that_no_own_change_explains_is_recalled_after_the_job() {
    let (mut bench, y) = report_of_another_name(6);
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), [GrantorOutput::Verify(LeaseItem::named(DIR, y.clone()))]);
    assert_eq!(bench.touch(2, A, &[named(DIR, "z")]), TouchOutcome::Clear);
    bench.grantor.external_change(bench.now, DIR, Some(&y), Some(7));
    bench.grantor.end(JobKey(2));
    assert_eq!(
        bench.outputs(),
        [GrantorOutput::Verify(LeaseItem::named(DIR, y.clone()))],
        "the running change may explain it"
    );
    bench.grantor.external_change(bench.now, DIR, Some(&y), Some(7));
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::named(DIR, y)])]);
}

#[test]
fn consecutive_jobs_do_not_delay_a_report_forever() {
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
fn the_removal_of_an_object_is_attributed_to_the_own_change() {
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
fn everything_is_recalled_from_all_holders() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grantor.begin(JobKey(1));
    bench.grantor.recall_everything(bench.now);
    bench.grantor.recall_everything(bench.now);
    assert_eq!(bench.outputs(), [recall(A, 1, &[])], "no recall without leases, and none twice");
    assert_eq!(
        bench.grantor.grant(bench.now, JobKey(1), B, &[G]),
        [false],
        "that entry may have changed too"
    );
    assert_eq!((bench.read(A, &[G]), bench.read(B, &[G])), (vec![false], vec![true]));
    assert_eq!(bench.touch(2, B, &[whole(F)]), TouchOutcome::Parked);
    assert!(!bench.grantor.is_idle());
    bench.recalled(A, 1);
    assert_eq!(bench.outputs(), [retry(2)]);
    bench.grant(A, G);
}

#[test]
fn a_server_is_idle_when_no_lease_can_be_valid() {
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
    assert!(bench.grantor.is_idle(), "one holder has answered, the other's leases have expired");
}
