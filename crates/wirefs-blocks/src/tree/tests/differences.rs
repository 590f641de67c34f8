//! What is told of the differences between checkpoints.

use super::world::{World, at, bytes};
use crate::tree::{Changed, Difference};
use bytes::Bytes;
use std::collections::BTreeMap;
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Errno, SetStat};

fn told(differences: Vec<Difference>) -> Vec<(String, Changed)> {
    let told = differences.into_iter();
    told.map(|difference| (String::from_utf8(difference.path).unwrap(), difference.changed)).collect()
}

#[test]
fn each_change_is_told_by_its_path() {
    let world = World::new();
    for dir in ["a", "a/b", "c"] {
        world.mkdir(dir).unwrap();
    }
    for name in ["a/same", "a/b/gone", "a/b/written", "c/moved", "c/mode", "c/xattr"] {
        world.create(name, bytes(3000, 1)).unwrap();
    }
    world.tree.create_checkpoint(b"one").unwrap();
    assert_eq!(world.tree.diff(b"one", None), Ok(vec![]));
    world.remove("a/b/gone").unwrap();
    world.write(at("a/b/written"), 2000, bytes(1, 9)).unwrap();
    world.rename("c/moved", "a/b/here", 0).unwrap();
    world.set("c/mode", SetStat { mode: Some(0o600), ..SetStat::default() }).unwrap();
    world.xattr("c/xattr", XattrAction::Set, "user.a", Bytes::from_static(b"v")).unwrap();
    world.mkdir("new").unwrap();
    world.create("new/file", Bytes::new()).unwrap();
    use Changed::{Added, Modified, Removed};
    let expected = [
        ("", Modified),
        ("a/b", Modified),
        ("a/b/gone", Removed),
        ("a/b/here", Added),
        ("a/b/written", Modified),
        ("c", Modified),
        ("c/mode", Modified),
        ("c/moved", Removed),
        ("c/xattr", Modified),
        ("new", Added),
        ("new/file", Added),
    ];
    let expected: Vec<(String, Changed)> =
        expected.into_iter().map(|(path, changed)| (path.into(), changed)).collect();
    assert_eq!(told(world.tree.diff(b"one", None).unwrap()), expected);
    world.tree.create_checkpoint(b"two").unwrap();
    world.remove("new/file").unwrap();
    assert_eq!(told(world.tree.diff(b"one", Some(b"two")).unwrap()), expected);
    // Backwards, what was added is removed.
    let backwards: BTreeMap<String, Changed> =
        told(world.tree.diff(b"two", Some(b"one")).unwrap()).into_iter().collect();
    assert_eq!((backwards["a/b/gone"], backwards["new"]), (Added, Removed));
    assert_eq!(world.tree.diff(b"three", None), Err(Errno::NotFound));
}

#[test]
fn a_name_that_stands_for_another_object_is_modified() {
    let world = World::new();
    world.create("a", bytes(10, 1)).unwrap();
    world.create("b", bytes(10, 2)).unwrap();
    world.tree.create_checkpoint(b"one").unwrap();
    world.rename("a", "b", 0).unwrap();
    let expected = [("", Changed::Modified), ("a", Changed::Removed), ("b", Changed::Modified)];
    let expected: Vec<_> = expected.into_iter().map(|(path, changed)| (path.to_string(), changed)).collect();
    assert_eq!(told(world.tree.diff(b"one", None).unwrap()), expected);
}

#[test]
fn comparing_looks_only_at_what_is_not_shared() {
    let world = World::of(1400, 1 << 20, 0);
    for dir in 0..20 {
        world.mkdir(&format!("{dir}")).unwrap();
        for file in 0..50 {
            world.create(&format!("{dir}/{file}"), bytes(500, file)).unwrap();
        }
    }
    world.tree.create_checkpoint(b"one").unwrap();
    world.write(at("7/7"), 0, bytes(1, 9)).unwrap();
    let before = world.tree.figures();
    let differences = world.tree.diff(b"one", None).unwrap();
    assert_eq!(told(differences), [("7/7".to_string(), Changed::Modified)]);
    let retrieved = world.tree.figures().retrieved - before.retrieved;
    assert!(retrieved < 30, "{retrieved} of {} blocks", world.store.all().len());
}
