//! Tests of what a holder may believe.

use super::Knowledge;
use wirefs_op::FileId;

fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

fn knowing(count: u64) -> Knowledge {
    let mut knowledge = Knowledge::default();
    assert!((0..count).all(|ino| knowledge.learn(id(ino))));
    knowledge
}

#[test]
fn what_is_recalled_is_pending_until_its_mark_is_cleared() {
    let mut knowledge = knowing(2);
    knowledge.recall(id(0), true);
    let first = knowledge.mark();
    knowledge.recall(id(1), true);
    assert_eq!((knowledge.pending(id(0)), knowledge.knows(id(0))), (Some(first), false));
    knowledge.clear(first);
    assert_eq!((knowledge.pending(id(0)), knowledge.pending(id(1))), (None, Some(knowledge.mark())));
    assert!(knowledge.learn(id(0)), "it is new again");
}

#[test]
fn what_leaves_stays_pending_although_everything_is_recalled_again() {
    let mut knowledge = knowing(2);
    knowledge.leave();
    let first = knowledge.mark();
    knowledge.leave();
    assert_eq!((knowledge.pending(id(1)), knowledge.len(), knowledge.is_leaving()), (Some(first), 2, true));
    knowledge.clear(first);
    assert_eq!((knowledge.pending(id(1)), knowledge.len(), knowledge.is_leaving()), (None, 0, false));
}

#[test]
fn what_is_cleared_takes_no_room() {
    let mut knowledge = knowing(10);
    for ino in 0..5 {
        knowledge.recall(id(ino), true);
    }
    let mark = knowledge.mark();
    for ino in 5..10 {
        knowledge.recall(id(ino), true);
    }
    knowledge.clear(mark);
    knowledge.trim([id(0), id(9)].into_iter(), 9);
    assert_eq!(knowledge.recalling.len(), 9, "what it is told of, as far as it is cleared");
    knowledge.trim([].into_iter(), 5);
    assert_eq!(knowledge.recalling.len(), 5, "all that is cleared, when there is too much");
    assert!(knowledge.pending(id(9)).is_some());
    knowledge.clear_all();
    assert!(knowledge.recalling.is_empty() && knowledge.cleared() == knowledge.mark());
}
