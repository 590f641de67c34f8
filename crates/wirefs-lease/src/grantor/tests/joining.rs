//! Connections break, and holders reconnect.

use super::{A, B, Bench, DIR, F, G, named, recall, recall_own_lease, retry, whole};
use crate::grantor::{GrantorOutput, JobKey, JoinOutcome, TouchOutcome};
use crate::limits::RECALL_ITEMS_MAX;
use crate::recall::LeaseItem;

#[test]
fn unanswered_recalls_are_sent_again_after_a_reconnect() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grant(A, G);
    bench.touch(1, B, &[whole(F)]);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])]);
    bench.grantor.disconnected(bench.now, A);
    assert_eq!(bench.touch(2, B, &[whole(G)]), TouchOutcome::Parked, "its lease is still valid");
    assert_eq!(bench.outputs(), [], "no connection to send it on");
    bench.pass(5, &[B]);
    assert_eq!(bench.join(A), JoinOutcome::Retained);
    assert_eq!(bench.outputs(), [recall(A, 2, &[LeaseItem::whole(F), LeaseItem::whole(G)])]);
    bench.recalled(A, 1);
    assert_eq!(bench.outputs(), [], "that serial belongs to the previous connection");
    bench.recalled(A, 2);
    assert_eq!(bench.outputs(), [retry(1), retry(2)]);
}

#[test]
fn a_replaced_connection_counts_as_broken() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.touch(1, B, &[whole(F)]);
    bench.outputs();
    assert_eq!(bench.join(A), JoinOutcome::Retained);
    assert_eq!(bench.outputs(), [recall(A, 2, &[LeaseItem::whole(F)])]);
}

#[test]
fn a_disconnected_holder_is_granted_nothing() {
    let mut bench = Bench::new(&[A]);
    bench.grantor.disconnected(bench.now, A);
    assert_eq!(bench.read(A, &[F]), [false]);
    bench.join(A);
    bench.grant(A, F);
}

#[test]
fn changes_wait_for_a_disconnected_holder_until_its_leases_expire() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.pass(3, &[A, B]);
    bench.grantor.disconnected(bench.now, A);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked);
    bench.pass(19, &[B]);
    assert_eq!(bench.outputs(), []);
    bench.pass(1, &[B]);
    assert_eq!(bench.outputs(), [retry(1)]);
    bench.change(1, B, &[whole(F)]);
    assert_eq!(bench.join(A), JoinOutcome::Retained);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])], "the recall arrives late");
}

#[test]
fn a_join_stays_fresh_until_the_holder_has_sent_a_request() {
    let mut bench = Bench::new(&[]);
    for _ in 0..3 {
        assert_eq!(bench.join(A), JoinOutcome::Fresh);
        // The holder answers a recall of its previous connection, possibly before it has the reply to its
        // join.
        bench.recalled(A, 7);
        bench.grantor.disconnected(bench.now, A);
        bench.grantor.renew(bench.now, A);
    }
    assert_eq!(bench.join(A), JoinOutcome::Fresh);
    bench.grantor.renew(bench.now, A);
    assert_eq!(bench.join(A), JoinOutcome::Retained);
}

#[test]
fn an_own_change_is_recalled_when_its_reply_cannot_arrive() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    bench.grant(A, DIR);
    assert_eq!(bench.touch(1, A, &[whole(F), named(DIR, "x")]), TouchOutcome::Clear);
    bench.grantor.disconnected(bench.now, A);
    assert_eq!(bench.join(A), JoinOutcome::Retained);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::named(DIR, "x"), LeaseItem::whole(F)])]);
    assert_eq!(bench.read(A, &[F, DIR]), [false, false], "the object is being changed");
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.read(A, &[F, DIR]), [true, true]);
    assert!(bench.grantor.touching.is_empty());
}

#[test]
fn an_own_change_that_ended_before_the_reconnect_is_recalled() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    assert_eq!(bench.touch(1, A, &[whole(F)]), TouchOutcome::Clear);
    bench.grantor.disconnected(bench.now, A);
    bench.grantor.end(JobKey(1));
    bench.join(A);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])]);
}

#[test]
fn changes_wait_until_all_missed_recalls_are_answered() {
    let mut bench = Bench::new(&[A, B]);
    let ids: Vec<_> = (100..100 + RECALL_ITEMS_MAX as u64 + 1).map(super::id).collect();
    bench.read(A, &ids);
    bench.grantor.disconnected(bench.now, A);
    assert_eq!(bench.touch(1, B, &[whole(ids[RECALL_ITEMS_MAX])]), TouchOutcome::Parked);
    let others: Vec<_> = ids[..RECALL_ITEMS_MAX].iter().map(|id| whole(*id)).collect();
    bench.touch(2, B, &others);
    bench.join(A);
    assert_eq!(bench.outputs().len(), 2);
    bench.recalled(A, 1);
    assert_eq!(bench.outputs(), [], "missed recalls have no order");
    bench.recalled(A, 2);
    assert_eq!(bench.outputs(), [retry(1), retry(2)]);
}

#[test]
fn recalls_answered_out_of_order_are_not_sent_again() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grant(A, G);
    for (job, id) in [(1, F), (2, G)] {
        bench.touch(job, B, &[whole(id)]);
        bench.outputs();
    }
    bench.recalled(A, 2);
    bench.join(A);
    assert_eq!(bench.outputs(), [recall(A, 3, &[LeaseItem::whole(F)])]);
    bench.recalled(A, 3);
    assert_eq!(bench.outputs(), [retry(1), retry(2)]);
}

#[test]
fn an_unanswered_recall_of_everything_is_sent_again_as_such() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grantor.recall_everything(bench.now);
    assert_eq!(bench.outputs(), [recall(A, 1, &[])]);
    bench.grantor.disconnected(bench.now, A);
    bench.grantor.recall_everything(bench.now);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked, "however often");
    bench.join(A);
    assert_eq!(bench.outputs(), [recall(A, 2, &[])]);
    bench.recalled(A, 2);
    assert_eq!(bench.outputs(), [retry(1)]);
}

#[test]
fn a_change_whose_connection_broke_before_it_was_clear_waits_for_its_own_holder() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grant(A, G);
    bench.grant(B, F);
    assert_eq!(bench.touch(1, A, &[whole(F), recall_own_lease(G)]), TouchOutcome::Parked);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(G)]), recall(B, 1, &[LeaseItem::whole(F)])]);
    bench.join(A);
    assert_eq!(bench.outputs(), [recall(A, 2, &[LeaseItem::whole(F), LeaseItem::whole(G)])]);
    bench.recalled(B, 1);
    assert_eq!(bench.outputs(), []);
    bench.recalled(A, 2);
    assert_eq!(bench.outputs(), [retry(1)]);
    assert_eq!(
        bench.grantor.touch(bench.now, JobKey(1), None, &[whole(F), recall_own_lease(G)]),
        TouchOutcome::Clear
    );
    bench.grantor.end(JobKey(1));
    assert!(bench.grantor.touching.is_empty());
}

#[test]
fn a_change_of_an_expelled_holder_waits_for_that_holder_too() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.grant(A, G);
    bench.grant(B, F);
    assert_eq!(bench.touch(2, B, &[whole(G)]), TouchOutcome::Parked);
    bench.pass(5, &[A, B]);
    assert_eq!(bench.touch(1, A, &[whole(F)]), TouchOutcome::Parked);
    bench.outputs();
    bench.pass(5, &[A, B]);
    bench.recalled(B, 1);
    assert_eq!(bench.outputs(), [GrantorOutput::Expel(A)]);
    bench.pass(20, &[B]);
    assert_eq!(bench.outputs(), [GrantorOutput::HolderRemoved(A), retry(2), retry(1)]);
}

#[test]
fn a_job_that_loses_its_holder_recalls_from_that_holder() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    assert_eq!(bench.touch(1, A, &[whole(F)]), TouchOutcome::Clear);
    assert_eq!(bench.grantor.touch(bench.now, JobKey(1), None, &[whole(F)]), TouchOutcome::Parked);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])]);
    bench.recalled(A, 1);
    assert_eq!(
        bench.grantor.touch(bench.now, JobKey(1), Some(A), &[whole(F), whole(G)]),
        TouchOutcome::Clear
    );
    bench.grantor.end(JobKey(1));
    assert!(bench.grantor.touching.is_empty());
}
