use crate::coherency::{Coherency, Freshness};
use crate::name_tree::tests::stat;
use crate::name_tree::{NameTree, ROOT};
use std::time::Duration;
use wirefs_op::{Kind, Stat, Time};

const TRUST: Coherency = Coherency {
    now: Time(30),
    window: Duration::from_nanos(100),
    requested_after: None,
    leased_since: None,
    leases_valid: false,
};

/// A tree without the node of a file that was changed, by a request sent at 10 and answered at 20, and then
/// evicted.
fn tree_without_file() -> NameTree {
    let mut names = NameTree::new(stat(1, Kind::Directory), Freshness::since(Time(0)));
    let (file, _) = names.learn(&stat(3, Kind::File), Freshness::since(Time(1)), &TRUST);
    names.link(ROOT, b"file", file);
    let written = Stat { size: 7, ..stat(3, Kind::File) };
    names.changed(file, Some(&written), Freshness::since(Time(10)), Time(20));
    names.evict_if_unused(file);
    assert!(names.node(file).is_none());
    names
}

#[test]
fn attributes_requested_before_an_own_change_are_ignored_after_eviction() {
    let mut names = tree_without_file();
    let (file, counts) = names.learn(&stat(3, Kind::File), Freshness::since(Time(15)), &TRUST);
    assert!(!counts);
    let node = names.node(file).unwrap();
    assert_eq!((node.stat.size, node.freshness), (7, Some(Freshness::since(Time(10)))));
    let (_, counts) = names.learn(&stat(3, Kind::File), Freshness::since(Time(25)), &TRUST);
    assert!(counts);
    assert!(names.node(file).unwrap().is_fresh(&TRUST));
}

#[test]
fn attributes_invalidated_while_evicted_stay_invalid() {
    let mut names = tree_without_file();
    names.invalidate_file(stat(3, Kind::File).id);
    let (file, _) = names.learn(&stat(3, Kind::File), Freshness::since(Time(15)), &TRUST);
    assert_eq!(names.node(file).unwrap().freshness, None);
}

#[test]
fn attributes_requested_after_the_change_are_accepted() {
    let mut names = tree_without_file();
    let (file, counts) = names.learn(&stat(3, Kind::File), Freshness::since(Time(25)), &TRUST);
    assert!(counts);
    assert_eq!(names.node(file).unwrap().stat.size, 0);
}

#[test]
fn old_own_changes_are_removed() {
    let mut names = tree_without_file();
    names.expire(Time(20) + super::EVICTED_FOR);
    assert!(names.evicted.nodes.is_empty() && names.evicted.order.is_empty());
}

#[test]
fn own_changes_beyond_the_limit_are_not_reverted() {
    let mut names = tree_without_file();
    for ino in 100..100 + super::EVICTED_MAX as u64 {
        let (file, _) = names.learn(&stat(ino, Kind::File), Freshness::since(Time(21)), &TRUST);
        names.changed(file, None, Freshness::since(Time(22)), Time(23));
        names.evict_if_unused(file);
    }
    assert_eq!(names.evicted.nodes.len(), super::EVICTED_MAX);
    let (file, counts) = names.learn(&stat(3, Kind::File), Freshness::since(Time(15)), &TRUST);
    assert!(!counts && !names.node(file).unwrap().is_fresh(&TRUST));
}
