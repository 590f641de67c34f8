//! When a change may run.

use super::{A, B, Bench, C, DIR, F, G, id, named, recall, retry, whole};
use crate::grantor::{Grantor, JobKey, LeaseConfig, TouchOutcome};
use crate::recall::LeaseItem;
use std::time::Duration;
use wirefs_op::Time;

const OTHER: wirefs_op::FileId = id(2);

#[test]
fn changes_of_names_in_one_directory_are_serialized() {
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
fn a_directory_stays_locked_while_its_change_waits_for_a_recall() {
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
fn a_job_that_needs_more_directories_releases_its_locks_before_it_waits() {
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
fn a_change_that_releases_a_directory_lets_the_next_one_run() {
    let mut bench = Bench::new(&[A, B]);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.touch(2, B, &[named(OTHER, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.touch(3, B, &[named(DIR, "y")]), TouchOutcome::Parked);
    assert_eq!(bench.grantor.touch(bench.now, JobKey(2), Some(B), &[named(DIR, "z")]), TouchOutcome::Parked);
    bench.touch(4, A, &[named(OTHER, "y")]);
    bench.grantor.end(JobKey(1));
    // The older job has both directories; the other jobs wait for it.
    assert_eq!(bench.outputs(), [retry(2)]);
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.outputs(), [retry(3), retry(4)]);
}

#[test]
fn objects_of_an_attempt_stay_clear_for_the_next_one() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(B, F);
    bench.touch(1, A, &[named(DIR, "x"), whole(F)]);
    bench.outputs();
    bench.recalled(B, 1);
    assert_eq!(bench.outputs(), [retry(1)]);
    assert_eq!(bench.touch(1, A, &[named(DIR, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.read(B, &[F]), [false], "it is still touched");
    assert_eq!(bench.grantor.touch(bench.now, JobKey(1), Some(A), &[whole(F)]), TouchOutcome::Clear);
}

#[test]
fn objects_that_an_attempt_no_longer_names_are_released() {
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
fn a_parked_job_that_ends_releases_everything() {
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
fn objects_of_a_parked_job_that_proceeded_count_as_changed() {
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
fn after_an_unclean_end_no_change_runs_before_all_leases_expired() {
    let until = Time(0) + Duration::from_secs(20);
    let mut bench = Bench::new(&[]);
    bench.grantor = Grantor::new(LeaseConfig::default(), Some(until));
    bench.join(A);
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
fn a_change_after_the_recovery_time_runs_before_the_next_tick() {
    let until = Time(0) + Duration::from_secs(20);
    let mut bench = Bench::new(&[]);
    bench.grantor = Grantor::new(LeaseConfig::default(), Some(until));
    assert_eq!(bench.touch(1, A, &[whole(F)]), TouchOutcome::Parked);
    bench.now = until;
    assert_eq!(bench.touch(2, A, &[whole(F)]), TouchOutcome::Clear);
    assert_eq!(bench.outputs(), [retry(1)]);
}
