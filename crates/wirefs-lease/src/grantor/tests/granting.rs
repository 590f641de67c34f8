//! Which replies are granted.

use super::{A, B, Bench, DIR, F, G, id, named, recall_own_lease, whole};
use crate::grantor::{HolderKey, JobKey, TouchOutcome};

const READ: JobKey = JobKey(1);

#[test]
fn unchanged_objects_are_granted() {
    let mut bench = Bench::new(&[A]);
    assert_eq!(bench.read(A, &[DIR, F, G]), [true; 3]);
    assert!(bench.grantor.is_leased(F) && !bench.grantor.is_leased(id(99)));
    assert_eq!((bench.grantor.leased_objects(), bench.read(A, &[F])), (3, vec![true]));
}

#[test]
fn unknown_holders_and_jobs_are_granted_nothing() {
    let mut bench = Bench::new(&[A]);
    assert_eq!(bench.read(HolderKey(9), &[F]), [false]);
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F]), [false], "that job was not started");
    assert_eq!(bench.grantor.leased_objects(), 0);
}

#[test]
fn an_object_changed_by_another_holder_since_the_job_began_is_not_granted() {
    let mut bench = Bench::new(&[A, B]);
    bench.grantor.begin(READ);
    bench.change(2, B, &[whole(F)]);
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, G]), [false, true]);
    assert_eq!(bench.read(A, &[F]), [true], "later reads return the new state");
}

#[test]
fn an_object_being_changed_is_not_granted_to_other_holders() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    assert_eq!(bench.touch(2, B, &[whole(F), named(DIR, "x")]), TouchOutcome::Parked);
    assert_eq!(bench.read(A, &[F, DIR, G]), [false, false, true], "it waits");
    bench.outputs();
    bench.recalled(A, 1);
    assert_eq!(bench.read(A, &[F, DIR]), [false, false], "the job runs again");
    assert_eq!(bench.touch(2, B, &[whole(F), named(DIR, "x")]), TouchOutcome::Clear);
    bench.grantor.begin(READ);
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, DIR]), [false, false], "the change runs");
    bench.grantor.end(JobKey(2));
    assert_eq!(
        bench.grantor.grant(bench.now, READ, A, &[F, DIR]),
        [false, false],
        "it may have read before the change"
    );
    assert_eq!(bench.read(A, &[F, DIR]), [true, true]);
}

#[test]
fn own_changes_are_granted_in_their_replies_and_to_concurrent_reads() {
    let mut bench = Bench::new(&[A]);
    bench.grantor.begin(READ);
    assert_eq!(bench.touch(2, A, &[whole(F), named(DIR, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.grantor.grant(bench.now, JobKey(2), A, &[F, DIR]), [true, true]);
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, DIR]), [true, true]);
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, DIR]), [true, true]);
}

#[test]
fn an_object_with_recall_own_is_not_granted_to_the_requester() {
    let mut bench = Bench::new(&[A]);
    bench.grantor.begin(READ);
    assert_eq!(bench.touch(2, A, &[recall_own_lease(F)]), TouchOutcome::Clear);
    assert_eq!(bench.grantor.grant(bench.now, JobKey(2), A, &[F]), [false]);
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F]), [false]);
    bench.grant(A, F);
}

#[test]
fn a_change_that_was_never_clear_does_not_count() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grantor.begin(READ);
    assert_eq!(bench.touch(2, B, &[whole(F), whole(G)]), TouchOutcome::Parked);
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, G]), [true, true]);
}

#[test]
fn a_retried_job_counts_from_its_new_start() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(B, F);
    assert_eq!(bench.touch(2, A, &[whole(F)]), TouchOutcome::Parked);
    bench.change(3, B, &[whole(G)]);
    bench.outputs();
    bench.recalled(B, 1);
    assert_eq!(bench.touch(2, A, &[whole(F), whole(G)]), TouchOutcome::Clear);
    assert_eq!(bench.grantor.grant(bench.now, JobKey(2), A, &[F, G]), [true, true]);
}
