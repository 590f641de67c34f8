//! Tests of the leases of one holder.

use super::HeldLeases;
use wirefs_op::FileId;

fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

fn knowing(count: u64) -> HeldLeases {
    let mut leases = HeldLeases::default();
    assert!((0..count).all(|ino| leases.grant(id(ino))));
    leases
}

#[test]
fn a_recalled_object_is_pending_until_its_position_is_cleared() {
    let mut leases = knowing(2);
    leases.recall(id(0), true);
    let first = leases.position();
    leases.recall(id(1), true);
    assert_eq!((leases.pending(id(0)), leases.contains(id(0))), (Some(first), false));
    leases.clear(first);
    assert_eq!((leases.pending(id(0)), leases.pending(id(1))), (None, Some(leases.position())));
    assert!(leases.grant(id(0)), "it is new again");
}

#[test]
fn recalled_objects_stay_pending_after_a_second_recall_of_everything() {
    let mut leases = knowing(2);
    leases.recall_all();
    let first = leases.position();
    leases.recall_all();
    assert_eq!((leases.pending(id(1)), leases.len(), leases.is_recalling_all()), (Some(first), 2, true));
    leases.clear(first);
    assert_eq!((leases.pending(id(1)), leases.len(), leases.is_recalling_all()), (None, 0, false));
}

#[test]
fn cleared_recalls_take_no_memory() {
    let mut leases = knowing(10);
    for ino in 0..5 {
        leases.recall(id(ino), true);
    }
    let position = leases.position();
    for ino in 5..10 {
        leases.recall(id(ino), true);
    }
    leases.clear(position);
    leases.trim([id(0), id(9)].into_iter(), 9);
    assert_eq!(leases.recalling.len(), 9, "answered recalls are removed");
    leases.trim([].into_iter(), 5);
    assert_eq!(leases.recalling.len(), 5, "cleared objects are removed, when there are too many");
    assert!(leases.pending(id(9)).is_some());
    leases.clear_all();
    assert!(leases.recalling.is_empty() && leases.cleared() == leases.position());
}
