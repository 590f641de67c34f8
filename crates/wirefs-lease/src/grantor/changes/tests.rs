//! Tests of what was changed of late.

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
fn a_change_counts_for_all_but_who_made_it() {
    let mut changes = Changes::default();
    let before = changes.moment();
    changes.ended([(id(1), Some(A))].into_iter());
    assert!(changes.is_changed(id(1), before, B) && !changes.is_changed(id(1), before, A));
    assert!(!changes.is_changed(id(2), before, B), "another object");
    assert!(!changes.is_changed(id(1), changes.moment(), B), "it was before");
    let before = changes.moment();
    changes.ended([(id(1), None)].into_iter());
    assert!(changes.is_changed(id(1), before, A), "by somebody who holds nothing");
}

#[test]
fn a_change_by_another_is_not_hidden_by_an_own_one_behind_it() {
    let mut changes = Changes::default();
    let before = changes.moment();
    changes.ended([(id(1), Some(A))].into_iter());
    let between = changes.moment();
    changes.ended([(id(1), Some(B))].into_iter());
    changes.ended([(id(1), Some(B))].into_iter());
    assert!(changes.is_changed(id(1), before, B), "A's is in between");
    assert!(!changes.is_changed(id(1), between, B), "only own ones since");
    assert!(changes.is_changed(id(1), between, C));
}

#[test]
fn beyond_the_horizon_nothing_is_answered() {
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
        "object 1 was changed twice, object 0 is forgotten"
    );
}

#[test]
fn one_change_of_more_objects_than_are_remembered_hides_none() {
    let mut changes = Changes::default();
    let before = changes.moment();
    changes.ended((0..2 * CHANGES_MAX as u64).map(|ino| (id(ino), Some(A))));
    assert!(changes.is_before_horizon(before) && !changes.is_before_horizon(changes.moment()));
}

#[test]
fn after_a_change_of_everything_nothing_from_before_is_in_sight() {
    let mut changes = Changes::default();
    let before = changes.moment();
    changes.ended_everywhere();
    assert!(changes.is_before_horizon(before) && !changes.is_before_horizon(changes.moment()));
}
