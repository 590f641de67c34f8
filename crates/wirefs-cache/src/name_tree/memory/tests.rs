use super::super::tests::stat;
use super::*;
use crate::coherency::{Coherency, Freshness};
use crate::name_tree::ROOT;
use std::time::Duration;
use wirefs_op::{Kind, Time};

#[test]
fn evicted_nodes_take_no_memory() {
    let coherency = Coherency::within(Time(1), Duration::from_nanos(5));
    let freshness = Freshness::since(Time(1));
    let mut names = NameTree::new(stat(1, Kind::Directory), freshness);
    let empty = names.bytes();
    assert_eq!(empty, NODE_BYTES);
    let (dir, _) = names.learn(&stat(2, Kind::Directory), freshness, &coherency);
    let (file, _) = names.learn(&stat(3, Kind::File), freshness, &coherency);
    names.link(ROOT, b"dir", dir);
    names.link(dir, b"first", file);
    names.link(dir, b"second", file);
    assert_eq!(names.bytes(), 3 * NODE_BYTES + COPIES * (3 + 5 + 6));
    // Another client moved the directory, which has one name.
    names.link(ROOT, b"moved", dir);
    names.rename((dir, b"first"), (ROOT, b"third"), false);
    names.rename((dir, b"second"), (ROOT, b"third"), false);
    assert!(names.add_negative(dir, b"nothing"));
    assert_eq!(names.bytes(), 3 * NODE_BYTES + COPIES * (5 + 5) + NEGATIVE_ENTRY_BYTES);
    names.evict_if_unused(file);
    names.evict_if_unused(dir);
    assert_eq!(names.bytes(), empty);
}
