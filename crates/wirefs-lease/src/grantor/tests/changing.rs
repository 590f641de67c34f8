//! When changes may go on.

use super::{A, B, Bench, C, DIR, F, G, id, named, recall, retry, whole};
use crate::grantor::{Grantor, JobKey, LeaseConfig, TouchOutcome};
use crate::recall::LeaseItem;
use std::time::Duration;
use wirefs_op::Time;

const OTHER: wirefs_op::FileId = id(2);

#[test]
fn changes_of_names_of_one_directory_come_one_after_the_other() {
    let mut bench = Bench::new(&[A, B]);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.touch(2, B, &[named(DIR, "y")]), TouchOutcome::Parked);
    assert_eq!(bench.touch(3, B, &[named(OTHER, "y")]), TouchOutcome::Clear, "another directory");
    assert_eq!(bench.touch(4, B, &[whole(DIR)]), TouchOutcome::Clear, "no names change");
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), [retry(2)]);
    assert_eq!(bench.touch(2, B, &[named(DIR, "y")]), TouchOutcome::Clear);
}

#[test]
fn a_directory_is_kept_while_its_change_is_parked_for_a_recall() {
    let mut bench = Bench::new(&[A, B, C]);
    bench.grant(C, F);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.grantor.touch(bench.now, JobKey(1), Some(A), &[whole(F)]), TouchOutcome::Parked);
    assert_eq!(bench.touch(2, B, &[named(DIR, "x")]), TouchOutcome::Parked);
    assert_eq!(bench.outputs(), [recall(C, 1, &[LeaseItem::whole(F)])]);
    bench.recalled(C, 1);
    assert_eq!(bench.outputs(), [retry(1)]);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.grantor.touch(bench.now, JobKey(1), Some(A), &[whole(F)]), TouchOutcome::Clear);
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), [retry(2)]);
}

#[test]
fn a_job_that_needs_more_directories_gives_up_those_it_has_rather_than_wait_with_them() {
    let mut bench = Bench::new(&[A, B]);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.touch(2, B, &[named(OTHER, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.grantor.touch(bench.now, JobKey(2), Some(B), &[named(DIR, "x")]), TouchOutcome::Parked);
    assert_eq!(bench.grantor.touch(bench.now, JobKey(1), Some(A), &[named(OTHER, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.outputs(), []);
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), [retry(2)]);
    assert_eq!(bench.touch(2, B, &[named(OTHER, "x"), named(DIR, "x")]), TouchOutcome::Clear);
}

#[test]
fn a_change_that_gives_up_a_directory_lets_the_next_one_go_on() {
    let mut bench = Bench::new(&[A, B]);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.touch(2, B, &[named(OTHER, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.touch(3, B, &[named(DIR, "y")]), TouchOutcome::Parked);
    assert_eq!(bench.grantor.touch(bench.now, JobKey(2), Some(B), &[named(DIR, "z")]), TouchOutcome::Parked);
    bench.touch(4, A, &[named(OTHER, "y")]);
    bench.grantor.end(JobKey(1));
    // The older of the two has both its directories; the others wait for it.
    assert_eq!(bench.outputs(), [retry(2)]);
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.outputs(), [retry(3), retry(4)]);
}

#[test]
fn what_an_attempt_found_is_kept_clear_for_the_next_one() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(B, F);
    bench.touch(1, A, &[named(DIR, "x"), whole(F)]);
    bench.outputs();
    bench.recalled(B, 1);
    assert_eq!(bench.outputs(), [retry(1)]);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.read(B, &[F]), [false], "it is about to be found again");
    assert_eq!(bench.grantor.touch(bench.now, JobKey(1), Some(A), &[whole(F)]), TouchOutcome::Clear);
}

#[test]
fn what_an_attempt_did_not_find_any_more_is_let_go_of() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(B, F);
    bench.grant(B, G);
    bench.touch(1, A, &[named(DIR, "x"), whole(F)]);
    bench.outputs();
    bench.recalled(B, 1);
    assert_eq!(
        bench.touch(1, A, &[named(OTHER, "x"), whole(G)]),
        TouchOutcome::Parked,
        "it was moved meanwhile"
    );
    bench.outputs();
    assert_eq!(bench.touch(2, B, &[named(DIR, "y")]), TouchOutcome::Parked);
    bench.recalled(B, 2);
    assert_eq!(bench.outputs(), [retry(1), retry(2)]);
    assert_eq!(bench.read(B, &[F, G]), [true, false]);
}

#[test]
fn a_parked_job_that_ends_lets_go_of_all() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(B, F);
    bench.touch(1, A, &[named(DIR, "x"), whole(F)]);
    assert_eq!(bench.touch(2, B, &[named(DIR, "y")]), TouchOutcome::Parked);
    bench.outputs();
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs(), [retry(2)]);
    bench.recalled(B, 1);
    assert_eq!(bench.outputs(), []);
    bench.grantor.end(JobKey(2));
    assert!(bench.grantor.jobs.is_empty() && bench.grantor.touching.is_empty());
}

#[test]
fn what_a_job_touched_counts_as_changed_when_it_goes_on_although_it_was_parked() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(B, F);
    bench.grantor.begin(JobKey(2));
    assert_eq!(bench.touch(1, A, &[whole(F)]), TouchOutcome::Parked);
    bench.grantor.proceeded(JobKey(1));
    bench.grantor.end(JobKey(1));
    assert_eq!(
        bench.grantor.grant(bench.now, JobKey(2), B, &[F, G]),
        [false, true],
        "read before the change"
    );
    assert_eq!(bench.read(B, &[F]), [true]);
}

#[test]
fn after_an_unclean_end_no_change_passes_before_all_leases_have_run_out() {
    let until = Time(0) + Duration::from_secs(20);
    let mut bench = Bench::new(&[]);
    bench.grantor = Grantor::new(LeaseConfig::default(), Some(until));
    bench.grantor.join(bench.now, A);
    assert_eq!(bench.touch(1, A, &[whole(F)]), TouchOutcome::Parked);
    assert_eq!(bench.touch(2, A, &[named(DIR, "x")]), TouchOutcome::Parked);
    assert_eq!(
        (bench.read(A, &[G]), bench.grantor.deadline(), bench.grantor.is_idle()),
        (vec![true], Some(until), false)
    );
    bench.pass(19, &[A]);
    bench.recalled(A, 1);
    assert_eq!(bench.outputs(), []);
    bench.pass(1, &[A]);
    assert_eq!(bench.outputs(), [retry(1), retry(2)]);
    bench.change(1, A, &[whole(F)]);
}

#[test]
fn a_change_that_comes_when_all_leases_have_run_out_passes_before_the_tick() {
    let until = Time(0) + Duration::from_secs(20);
    let mut bench = Bench::new(&[]);
    bench.grantor = Grantor::new(LeaseConfig::default(), Some(until));
    assert_eq!(bench.touch(1, A, &[whole(F)]), TouchOutcome::Parked);
    bench.now = until;
    assert_eq!(bench.touch(2, A, &[whole(F)]), TouchOutcome::Clear);
    assert_eq!(bench.outputs(), [retry(1)]);
}
