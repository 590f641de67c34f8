use super::{Pace, Walks};
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_op::Time;

const PARENT: TreeNodeId = TreeNodeId(5);

fn at(ms: u64) -> Pace {
    Pace { now: Time(1_000_000_000 + ms * 1_000_000), rtt: Duration::from_millis(85) }
}

#[test]
fn the_second_directory_in_one_is_a_walk() {
    let mut walks = Walks::default();
    assert!(!walks.enters(PARENT, TreeNodeId(6), at(0)));
    assert!(!walks.enters(PARENT, TreeNodeId(6), at(10)), "the same once more");
    assert!(walks.enters(PARENT, TreeNodeId(7), at(20)));
}

#[test]
fn the_first_one_is_when_its_parent_was_just_listed() {
    let mut walks = Walks::default();
    walks.opened(PARENT, at(0));
    walks.listed(PARENT, at(85));
    assert!(walks.enters(PARENT, TreeNodeId(6), at(90)));
    let mut walks = Walks::default();
    walks.opened(PARENT, at(0));
    walks.listed(PARENT, at(85));
    assert!(!walks.enters(PARENT, TreeNodeId(6), at(800)), "a person took their time");
}

#[test]
fn what_was_long_ago_does_not_count() {
    let mut walks = Walks::default();
    assert!(!walks.enters(PARENT, TreeNodeId(6), at(0)));
    assert!(!walks.enters(PARENT, TreeNodeId(7), at(3000)));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut walks = Walks::default();
    for dir in 0..50_000 {
        walks.reads(TreeNodeId(dir), at(dir / 100));
    }
    assert!(walks.seen.len() <= super::SEEN_MAX, "{}", walks.seen.len());
}
