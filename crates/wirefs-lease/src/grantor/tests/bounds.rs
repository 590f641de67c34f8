//! All tables are bounded, and a full one breaks no guarantee.

use super::{A, B, Bench, C, F, id, named, recall, retry, whole};
use crate::grantor::{GrantorOutput, HolderKey, JobKey, JoinOutcome, LeaseConfig, TouchOutcome};
use crate::limits::{CHANGES_MAX, MISSED_MAX, OUTSTANDING_MAX, RECALL_ITEMS_MAX, UNATTRIBUTED_MAX};
use bytes::Bytes;
use wirefs_op::FileId;

fn ids(count: usize) -> Vec<FileId> {
    (0..count as u64).map(|ino| id(1000 + ino)).collect()
}

#[test]
fn at_the_lease_limit_the_largest_holder_is_recalled() {
    let mut bench = Bench::with(LeaseConfig { leases_max: 10, ..LeaseConfig::default() }, &[A, B, C]);
    let ids = ids(12);
    assert_eq!(bench.read(A, &ids[..6]), [true; 6]);
    assert_eq!(bench.read(B, &ids[..4]), [true; 4]);
    assert_eq!(bench.read(B, &ids[3..5]), [true, false], "an object with a lease takes no space");
    assert_eq!(bench.outputs(), [recall(A, 1, &[])]);
    assert_eq!((bench.read(C, &ids[..1]), bench.grantor.leased_objects()), (vec![false], 10));
    assert_eq!(bench.outputs(), [], "one at a time");
    assert_eq!(bench.touch(1, C, &[whole(ids[5])]), TouchOutcome::Parked, "A may still use its lease");
    assert_eq!(bench.touch(2, C, &[whole(ids[11])]), TouchOutcome::Clear);
    bench.recalled(A, 1);
    assert_eq!((bench.outputs(), bench.grantor.leased_objects()), (vec![retry(1)], 4));
    assert_eq!(bench.read(C, &ids[..6]), [true; 6]);
}

#[test]
fn the_leases_of_a_silent_holder_are_freed_immediately() {
    let mut bench = Bench::with(LeaseConfig { leases_max: 10, ..LeaseConfig::default() }, &[A, B]);
    let ids = ids(12);
    bench.read(A, &ids[..8]);
    bench.pass(20, &[B]);
    assert_eq!(bench.read(B, &ids[..3]), [true, true, false]);
    assert_eq!(
        bench.read(B, &ids[..12]),
        [true; 12][..10].iter().chain(&[false; 2]).copied().collect::<Vec<_>>()
    );
    bench.grantor.renew(bench.now, A);
    assert!(bench.outputs().contains(&recall(A, 1, &[])));
}

#[test]
fn missed_recalls_are_recorded_up_to_a_limit() {
    for (count, named) in [(MISSED_MAX, true), (MISSED_MAX + 1, false)] {
        let mut bench = Bench::new(&[A, B]);
        let ids = ids(count + 1);
        bench.read(A, &ids);
        bench.pass(20, &[B]);
        let touched: Vec<_> = ids[..count].iter().map(|id| whole(*id)).collect();
        bench.change(1, B, &touched);
        assert_eq!(bench.grantor.is_leased(ids[count]), named);
        bench.grantor.renew(bench.now, A);
        let outputs = bench.outputs();
        if named {
            assert_eq!(outputs.len(), MISSED_MAX.div_ceil(RECALL_ITEMS_MAX));
        } else {
            assert_eq!(outputs, [recall(A, 1, &[])]);
        }
    }
}

#[test]
fn changes_wait_for_missed_recalls_beyond_the_limit_too() {
    let mut bench = Bench::new(&[A, B]);
    let ids = ids(MISSED_MAX + 2);
    bench.read(A, &ids);
    bench.grantor.disconnected(bench.now, A);
    let touched: Vec<_> = ids[..=MISSED_MAX].iter().map(|id| whole(*id)).collect();
    assert_eq!(bench.touch(1, B, &touched), TouchOutcome::Parked);
    assert_eq!(bench.touch(2, B, &[whole(ids[MISSED_MAX + 1])]), TouchOutcome::Parked);
    bench.join(A);
    assert_eq!(bench.outputs(), [recall(A, 1, &[])]);
    bench.recalled(A, 1);
    assert_eq!(bench.outputs(), [retry(1), retry(2)]);
}

#[test]
fn too_many_unanswered_items_become_a_recall_of_everything() {
    let mut bench = Bench::new(&[A, B]);
    let ids = ids(OUTSTANDING_MAX + 10);
    bench.read(A, &ids);
    let touched: Vec<_> = ids[..OUTSTANDING_MAX + 5].iter().map(|id| whole(*id)).collect();
    assert_eq!(bench.touch(1, B, &touched), TouchOutcome::Parked);
    assert_eq!(bench.touch(2, B, &[whole(ids[OUTSTANDING_MAX + 7])]), TouchOutcome::Parked);
    bench.grantor.recall_everything(bench.now);
    let outputs = bench.outputs();
    let last = outputs.len() as u64;
    assert_eq!(last as usize, OUTSTANDING_MAX.div_ceil(RECALL_ITEMS_MAX) + 1);
    assert_eq!(outputs.last(), Some(&recall(A, last, &[])));
    assert_eq!(bench.read(A, &[F]), [false]);
    for serial in 1..last {
        bench.recalled(A, serial);
    }
    assert_eq!(bench.outputs(), []);
    bench.recalled(A, last);
    assert_eq!(bench.outputs(), [retry(1), retry(2)]);
    assert_eq!(bench.read(A, &[F]), [true]);
}

#[test]
fn too_many_unanswered_items_at_a_disconnect_become_everything() {
    let mut bench = Bench::new(&[A, B]);
    let ids = ids(MISSED_MAX + 2);
    bench.read(A, &ids);
    let touched: Vec<_> = ids[..=MISSED_MAX].iter().map(|id| whole(*id)).collect();
    assert_eq!(bench.touch(1, B, &touched), TouchOutcome::Parked);
    bench.outputs();
    bench.grantor.disconnected(bench.now, A);
    assert!(!bench.grantor.is_leased(ids[MISSED_MAX + 1]));
    assert_eq!(bench.touch(2, B, &[whole(ids[MISSED_MAX + 1])]), TouchOutcome::Parked);
    bench.join(A);
    let outputs = bench.outputs();
    let [GrantorOutput::Recall { serial, items, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert!(items.is_empty());
    bench.recalled(A, serial.0);
    assert_eq!((bench.outputs(), bench.grantor.leased_objects()), (vec![retry(1), retry(2)], 0));
}

#[test]
fn a_job_older_than_all_recorded_changes_is_granted_nothing() {
    let mut bench = Bench::new(&[A, B]);
    bench.grantor.begin(JobKey(1));
    for job in 0..=CHANGES_MAX as u64 {
        bench.change(1000 + job, B, &[whole(id(2000 + job))]);
    }
    assert_eq!(bench.grantor.grant(bench.now, JobKey(1), A, &[F]), [false]);
    bench.grant(A, F);
}

#[test]
fn holders_are_limited_and_the_longest_silent_one_is_removed() {
    let mut bench = Bench::with(LeaseConfig { holders_max: 3, ..LeaseConfig::default() }, &[A, B, C]);
    let other = HolderKey(9);
    assert_eq!(bench.join(other), JoinOutcome::Full);
    assert_eq!(bench.read(other, &[F]), [false]);
    bench.pass(1, &[A, B]);
    bench.pass(1, &[A]);
    bench.pass(20, &[]);
    assert_eq!(bench.join(other), JoinOutcome::Full, "they are silent, but connected");
    bench.grantor.disconnected(bench.now, A);
    bench.grantor.disconnected(bench.now, B);
    assert_eq!(bench.join(other), JoinOutcome::Fresh);
    assert_eq!(bench.outputs(), [GrantorOutput::HolderRemoved(B)]);
    assert_eq!(bench.grantor.holders(), 3);
    bench.grant(other, F);
}

#[test]
fn delayed_reports_are_limited() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    let names: Vec<Bytes> = (0..=UNATTRIBUTED_MAX).map(|number| Bytes::from(number.to_string())).collect();
    let touched: Vec<_> =
        names.iter().map(|name| super::Touched { name: Some(name.clone()), ..named(F, "") }).collect();
    assert_eq!(bench.touch(1, A, &touched), TouchOutcome::Clear);
    for name in &names {
        bench.grantor.external_change(bench.now, F, Some(name), Some(7));
    }
    let last = names.last().cloned().unwrap();
    assert_eq!(bench.outputs(), [recall(A, 1, &[crate::recall::LeaseItem::named(F, last)])]);
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.outputs().len(), UNATTRIBUTED_MAX);
}
