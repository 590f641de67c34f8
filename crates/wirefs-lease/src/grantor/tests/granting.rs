//! Which replies are granted.

use super::{A, B, Bench, DIR, F, G, id, named, recall_own_lease, whole};
use crate::grantor::{HolderKey, JobKey, TouchOutcome};

const READ: JobKey = JobKey(1);

#[test]
fn what_nobody_changes_is_granted() {
    let mut bench = Bench::new(&[A]);
    assert_eq!(bench.read(A, &[DIR, F, G]), [true; 3]);
    assert!(bench.grantor.is_leased(F) && !bench.grantor.is_leased(id(99)));
    assert_eq!((bench.grantor.leased_objects(), bench.read(A, &[F])), (3, vec![true]));
}

#[test]
fn who_holds_nothing_and_what_no_job_asked_for_is_not_granted() {
    let mut bench = Bench::new(&[A]);
    assert_eq!(bench.read(HolderKey(9), &[F]), [false]);
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F]), [false], "that job did not begin");
    assert_eq!(bench.grantor.leased_objects(), 0);
}

#[test]
fn a_change_by_another_since_the_job_began_is_not_granted() {
    let mut bench = Bench::new(&[A, B]);
    bench.grantor.begin(READ);
    bench.change(2, B, &[whole(F)]);
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, G]), [false, true]);
    assert_eq!(bench.read(A, &[F]), [true], "who reads from now on reads what is so");
}

#[test]
fn a_change_under_way_is_not_granted_to_others() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    assert_eq!(bench.touch(2, B, &[whole(F), named(DIR, "x")]), TouchOutcome::Parked);
    assert_eq!(bench.read(A, &[F, DIR, G]), [false, false, true], "it waits");
    bench.outputs();
    bench.recalled(A, 1);
    assert_eq!(bench.read(A, &[F, DIR]), [false, false], "it is to be carried out again");
    assert_eq!(bench.touch(2, B, &[whole(F), named(DIR, "x")]), TouchOutcome::Clear);
    bench.grantor.begin(READ);
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, DIR]), [false, false], "it is carried out");
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, DIR]), [false, false], "it may have read before");
    assert_eq!(bench.read(A, &[F, DIR]), [true, true]);
}

#[test]
fn own_changes_are_granted_in_their_own_replies_and_beside_them() {
    let mut bench = Bench::new(&[A]);
    bench.grantor.begin(READ);
    assert_eq!(bench.touch(2, A, &[whole(F), named(DIR, "x")]), TouchOutcome::Clear);
    assert_eq!(bench.grantor.grant(bench.now, JobKey(2), A, &[F, DIR]), [true, true]);
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, DIR]), [true, true]);
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, DIR]), [true, true]);
}

#[test]
fn an_own_change_that_surprises_is_not_granted_to_oneself() {
    let mut bench = Bench::new(&[A]);
    bench.grantor.begin(READ);
    assert_eq!(bench.touch(2, A, &[recall_own_lease(F)]), TouchOutcome::Clear);
    assert_eq!(bench.grantor.grant(bench.now, JobKey(2), A, &[F]), [false]);
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F]), [false]);
    bench.grant(A, F);
}

#[test]
fn a_change_that_never_was_clear_has_changed_nothing() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grantor.begin(READ);
    assert_eq!(bench.touch(2, B, &[whole(F), whole(G)]), TouchOutcome::Parked);
    bench.grantor.end(JobKey(2));
    assert_eq!(bench.grantor.grant(bench.now, READ, A, &[F, G]), [true, true]);
}

#[test]
fn a_job_that_is_carried_out_again_counts_from_its_new_beginning() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(B, F);
    assert_eq!(bench.touch(2, A, &[whole(F)]), TouchOutcome::Parked);
    bench.change(3, B, &[whole(G)]);
    bench.outputs();
    bench.recalled(B, 1);
    assert_eq!(bench.touch(2, A, &[whole(F), whole(G)]), TouchOutcome::Clear);
    assert_eq!(bench.grantor.grant(bench.now, JobKey(2), A, &[F, G]), [true, true]);
}
