//! Tests of the recent changes.

use super::Changes;
use crate::grantor::HolderKey;
use crate::limits::CHANGES_MAX;
use wirefs_op::FileId;

const A: HolderKey = HolderKey(1);
const B: HolderKey = HolderKey(2);
const C: HolderKey = HolderKey(3);

fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

#[test]
fn a_change_counts_for_all_holders_except_its_requester() {
    let mut changes = Changes::default();
    let before = changes.moment();
    changes.ended([(id(1), Some(A))].into_iter());
    assert!(changes.is_changed(id(1), before, B) && !changes.is_changed(id(1), before, A));
    assert!(!changes.is_changed(id(2), before, B), "another object");
    assert!(!changes.is_changed(id(1), changes.moment(), B), "it was valid before");
    let before = changes.moment();
    changes.ended([(id(1), None)].into_iter());
    assert!(changes.is_changed(id(1), before, A), "by a client without leases");
}

#[test]
fn a_change_by_another_holder_is_not_hidden_by_a_later_own_one() {
    let mut changes = Changes::default();
    let before = changes.moment();
    changes.ended([(id(1), Some(A))].into_iter());
    let between = changes.moment();
    changes.ended([(id(1), Some(B))].into_iter());
    changes.ended([(id(1), Some(B))].into_iter());
    assert!(changes.is_changed(id(1), before, B), "A's change intervened");
    assert!(!changes.is_changed(id(1), between, B), "only own ones since");
    assert!(changes.is_changed(id(1), between, C));
}

#[test]
fn moments_before_the_horizon_are_detected() {
    let mut changes = Changes::default();
    let before = changes.moment();
    changes.ended([(id(0), Some(A))].into_iter());
    for ino in 1..CHANGES_MAX as u64 {
        changes.ended([(id(ino), Some(A))].into_iter());
    }
    assert!(!changes.is_before_horizon(before) && changes.is_changed(id(0), before, B));
    changes.ended([(id(1), Some(A))].into_iter());
    assert!(changes.is_before_horizon(before));
    assert_eq!(
        changes.len(),
        (CHANGES_MAX, CHANGES_MAX - 1),
        "object 1 was changed twice, object 0 is not recorded"
    );
}

#[test]
fn one_change_of_more_objects_than_the_limit_hides_none() {
    let mut changes = Changes::default();
    let before = changes.moment();
    changes.ended((0..2 * CHANGES_MAX as u64).map(|ino| (id(ino), Some(A))));
    assert!(changes.is_before_horizon(before) && !changes.is_before_horizon(changes.moment()));
}

#[test]
fn after_a_change_of_everything_earlier_moments_are_before_the_horizon() {
    let mut changes = Changes::default();
    let before = changes.moment();
    changes.ended_everywhere();
    assert!(changes.is_before_horizon(before) && !changes.is_before_horizon(changes.moment()));
}
