//! Tests of what a holder may believe.

use super::HeldLeases;
use wirefs_op::FileId;

fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

fn knowing(count: u64) -> HeldLeases {
    let mut leases = HeldLeases::default();
    assert!((0..count).all(|ino| leases.learn(id(ino))));
    leases
}

#[test]
fn what_is_recalled_is_pending_until_its_mark_is_cleared() {
    let mut leases = knowing(2);
    leases.recall(id(0), true);
    let first = leases.position();
    leases.recall(id(1), true);
    assert_eq!((leases.pending(id(0)), leases.contains(id(0))), (Some(first), false));
    leases.clear(first);
    assert_eq!((leases.pending(id(0)), leases.pending(id(1))), (None, Some(leases.position())));
    assert!(leases.learn(id(0)), "it is new again");
}

#[test]
fn what_leaves_stays_pending_although_everything_is_recalled_again() {
    let mut leases = knowing(2);
    leases.recall_all();
    let first = leases.position();
    leases.recall_all();
    assert_eq!((leases.pending(id(1)), leases.len(), leases.is_recalling_all()), (Some(first), 2, true));
    leases.clear(first);
    assert_eq!((leases.pending(id(1)), leases.len(), leases.is_recalling_all()), (None, 0, false));
}

#[test]
fn what_is_cleared_takes_no_room() {
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
    assert_eq!(leases.recalling.len(), 9, "what it is told of, as far as it is cleared");
    leases.trim([].into_iter(), 5);
    assert_eq!(leases.recalling.len(), 5, "all that is cleared, when there is too much");
    assert!(leases.pending(id(9)).is_some());
    leases.clear_all();
    assert!(leases.recalling.is_empty() && leases.cleared() == leases.position());
}
