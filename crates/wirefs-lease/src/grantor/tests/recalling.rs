//! Which holders get which recalls.

use super::{A, B, Bench, C, DIR, F, G, id, named, recall, recall_own_lease, retry, whole};
use crate::grantor::{GrantorOutput, JobKey, TouchOutcome};
use crate::limits::{NAME_RECALLS_MAX, RECALL_BYTES_MAX, RECALL_ITEMS_MAX};
use crate::recall::LeaseItem;
use bytes::Bytes;
use wirefs_op::FileId;

#[test]
fn only_other_holders_with_a_lease_get_a_recall() {
    let mut bench = Bench::new(&[A, B, C]);
    bench.grant(A, F);
    bench.grant(B, F);
    bench.grant(C, G);
    assert_eq!(bench.touch(1, A, &[whole(F)]), TouchOutcome::Parked);
    assert_eq!(bench.outputs(), [recall(B, 1, &[LeaseItem::whole(F)])]);
    bench.recalled(B, 1);
    assert_eq!(bench.outputs(), [retry(1)]);
    bench.change(1, A, &[whole(F)]);
    bench.change(2, C, &[whole(G)]);
    assert_eq!(bench.outputs(), []);
}

#[test]
fn objects_without_a_lease_cost_no_recall() {
    let mut bench = Bench::new(&[A, B]);
    bench.change(1, A, &[whole(F)]);
    bench.grant(A, F);
    assert_eq!(bench.touch(2, B, &[whole(F)]), TouchOutcome::Parked);
    bench.outputs();
    bench.recalled(A, 1);
    bench.change(2, B, &[whole(F)]);
    bench.change(3, B, &[whole(F)]);
    assert_eq!(bench.outputs(), [retry(2)]);
}

#[test]
fn a_change_without_a_holder_recalls_from_all_holders() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    assert_eq!(bench.grantor.touch(bench.now, JobKey(1), None, &[whole(F)]), TouchOutcome::Parked);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])]);
}

#[test]
fn the_requesters_own_lease_is_recalled_without_waiting() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    assert_eq!(bench.touch(1, A, &[recall_own_lease(F)]), TouchOutcome::Clear);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])]);
}

#[test]
fn an_object_touched_again_with_recall_own_is_recalled() {
    let mut bench = Bench::new(&[A]);
    bench.grant(A, F);
    assert_eq!(bench.touch(1, A, &[whole(F)]), TouchOutcome::Clear);
    assert_eq!(bench.touch(1, A, &[recall_own_lease(F)]), TouchOutcome::Clear);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])]);
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.read(A, &[F]), [true]);
    assert!(bench.grantor.touching.is_empty(), "nothing stays touched");
}

#[test]
fn a_pending_recall_blocks_the_next_change_too() {
    let mut bench = Bench::new(&[A, B, C]);
    bench.grant(A, F);
    assert_eq!(bench.touch(1, B, &[whole(F)]), TouchOutcome::Parked);
    assert_eq!(bench.touch(2, C, &[whole(F)]), TouchOutcome::Parked);
    assert_eq!(bench.outputs(), [recall(A, 1, &[LeaseItem::whole(F)])], "one recall is sent");
    bench.grantor.end(JobKey(1));
    assert_eq!(bench.touch(3, B, &[whole(F)]), TouchOutcome::Parked);
    bench.recalled(A, 1);
    assert_eq!(bench.outputs(), [retry(2), retry(3)]);
}

#[test]
fn a_recall_of_one_name_leaves_the_rest_leased() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, DIR);
    for (serial, name) in [(1, "x"), (2, "x"), (3, "y")] {
        assert_eq!(bench.touch(serial, B, &[named(DIR, name)]), TouchOutcome::Parked);
        assert_eq!(bench.outputs(), [recall(A, serial, &[LeaseItem::named(DIR, name)])]);
        bench.recalled(A, serial);
        assert_eq!(bench.outputs(), [retry(serial)]);
        bench.change(serial, B, &[named(DIR, name)]);
        assert!(bench.grantor.is_leased(DIR));
    }
    assert_eq!(bench.touch(4, B, &[whole(DIR)]), TouchOutcome::Parked);
    assert_eq!(bench.outputs(), [recall(A, 4, &[LeaseItem::whole(DIR)])]);
    assert!(!bench.grantor.is_leased(DIR));
}

#[test]
fn after_eight_names_in_ten_seconds_the_directory_is_recalled() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, DIR);
    let last = u64::from(NAME_RECALLS_MAX) + 1;
    for serial in 1..=last {
        assert_eq!(bench.touch(serial, B, &[named(DIR, "x")]), TouchOutcome::Parked);
        let item = if serial < last { LeaseItem::named(DIR, "x") } else { LeaseItem::whole(DIR) };
        assert_eq!(bench.outputs(), [recall(A, serial, &[item])]);
        bench.recalled(A, serial);
        bench.outputs();
        bench.change(serial, B, &[named(DIR, "x")]);
    }
    bench.change(last + 1, B, &[named(DIR, "x")]);
    assert_eq!(bench.outputs(), [], "it has no lease on the directory any more");
}

#[test]
fn items_are_batched_up_to_a_limit_of_number() {
    let mut bench = Bench::new(&[A, B]);
    let ids: Vec<FileId> = (0..2 * RECALL_ITEMS_MAX as u64 + 1).map(id).collect();
    assert!(bench.read(A, &ids).into_iter().all(|granted| granted));
    let touched: Vec<_> = ids.iter().map(|id| whole(*id)).collect();
    assert_eq!(bench.touch(1, B, &touched), TouchOutcome::Parked);
    let outputs = bench.outputs();
    assert_eq!(outputs.iter().map(items).collect::<Vec<_>>(), [RECALL_ITEMS_MAX, RECALL_ITEMS_MAX, 1]);
    for serial in [3, 1] {
        bench.recalled(A, serial);
        assert_eq!(bench.outputs(), []);
    }
    bench.recalled(A, 2);
    assert_eq!(bench.outputs(), [retry(1)], "all recalls are answered");
}

#[test]
fn items_are_batched_up_to_a_limit_of_bytes() {
    let mut bench = Bench::new(&[A, B]);
    let ids: Vec<FileId> = (0..400).map(id).collect();
    bench.read(A, &ids);
    let name = Bytes::from(vec![b'n'; 255]);
    let touched: Vec<_> =
        ids.iter().map(|id| super::Touched { name: Some(name.clone()), ..whole(*id) }).collect();
    bench.touch(1, B, &touched);
    let outputs = bench.outputs();
    assert_eq!(outputs.iter().map(items).sum::<usize>(), 400);
    for output in &outputs[..outputs.len() - 1] {
        let GrantorOutput::Recall { items, .. } = output else { panic!("{output:?}") };
        // The size on the wire: id, presence flag, name length, name.
        let bytes: usize =
            items.iter().map(|item| 16 + 1 + 2 + item.name.as_ref().map_or(0, Bytes::len)).sum();
        assert!(bytes <= RECALL_BYTES_MAX, "{bytes} bytes");
        assert!(items.len() > 100, "{} items", items.len());
    }
}

fn items(output: &GrantorOutput) -> usize {
    let GrantorOutput::Recall { items, .. } = output else { panic!("{output:?}") };
    items.len()
}

#[test]
fn an_unexpected_answer_is_ignored() {
    let mut bench = Bench::new(&[A, B]);
    bench.grant(A, F);
    bench.touch(1, B, &[whole(F)]);
    bench.outputs();
    for serial in [0, 2, u64::MAX] {
        bench.recalled(A, serial);
    }
    bench.recalled(B, 1);
    bench.recalled(C, 1);
    assert_eq!(bench.outputs(), []);
}
