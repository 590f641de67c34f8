//! Differences between checkpoints.

use super::fixture::{TreeFixture, at, bytes};
use crate::tree::{Difference, DifferenceKind};
use bytes::Bytes;
use std::collections::BTreeMap;
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Errno, SetStat};

fn named(differences: Vec<Difference>) -> Vec<(String, DifferenceKind)> {
    let named = differences.into_iter();
    named.map(|difference| (String::from_utf8(difference.path).unwrap(), difference.kind)).collect()
}

#[test]
fn each_change_is_reported_with_its_path() {
    let fixture = TreeFixture::new();
    for dir in ["a", "a/b", "c"] {
        fixture.mkdir(dir).unwrap();
    }
    for name in ["a/same", "a/b/gone", "a/b/written", "c/moved", "c/mode", "c/xattr"] {
        fixture.create(name, bytes(3000, 1)).unwrap();
    }
    fixture.tree.create_checkpoint(b"one").unwrap();
    assert_eq!(fixture.tree.diff(b"one", None), Ok(vec![]));
    fixture.remove("a/b/gone").unwrap();
    fixture.write(at("a/b/written"), 2000, bytes(1, 9)).unwrap();
    fixture.rename("c/moved", "a/b/here", 0).unwrap();
    fixture.set("c/mode", SetStat { mode: Some(0o600), ..SetStat::default() }).unwrap();
    fixture.xattr("c/xattr", XattrAction::Set, "user.a", Bytes::from_static(b"v")).unwrap();
    fixture.mkdir("new").unwrap();
    fixture.create("new/file", Bytes::new()).unwrap();
    use DifferenceKind::{Added, Modified, Removed};
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
    let expected: Vec<(String, DifferenceKind)> =
        expected.into_iter().map(|(path, changed)| (path.into(), changed)).collect();
    assert_eq!(named(fixture.tree.diff(b"one", None).unwrap()), expected);
    fixture.tree.create_checkpoint(b"two").unwrap();
    fixture.remove("new/file").unwrap();
    assert_eq!(named(fixture.tree.diff(b"one", Some(b"two")).unwrap()), expected);
    // In the reverse direction, added names are removed ones.
    let backwards: BTreeMap<String, DifferenceKind> =
        named(fixture.tree.diff(b"two", Some(b"one")).unwrap()).into_iter().collect();
    assert_eq!((backwards["a/b/gone"], backwards["new"]), (Added, Removed));
    assert_eq!(fixture.tree.diff(b"three", None), Err(Errno::NotFound));
}

#[test]
fn name_of_another_object_is_reported_as_modified() {
    let fixture = TreeFixture::new();
    fixture.create("a", bytes(10, 1)).unwrap();
    fixture.create("b", bytes(10, 2)).unwrap();
    fixture.tree.create_checkpoint(b"one").unwrap();
    fixture.rename("a", "b", 0).unwrap();
    let expected =
        [("", DifferenceKind::Modified), ("a", DifferenceKind::Removed), ("b", DifferenceKind::Modified)];
    let expected: Vec<_> = expected.into_iter().map(|(path, changed)| (path.to_string(), changed)).collect();
    assert_eq!(named(fixture.tree.diff(b"one", None).unwrap()), expected);
}

#[test]
fn comparison_reads_only_unshared_blocks() {
    let fixture = TreeFixture::of(1400, 1 << 20, 0);
    for dir in 0..20 {
        fixture.mkdir(&format!("{dir}")).unwrap();
        for file in 0..50 {
            fixture.create(&format!("{dir}/{file}"), bytes(500, file)).unwrap();
        }
    }
    fixture.tree.create_checkpoint(b"one").unwrap();
    fixture.write(at("7/7"), 0, bytes(1, 9)).unwrap();
    let before = fixture.tree.statistics();
    let differences = fixture.tree.diff(b"one", None).unwrap();
    assert_eq!(named(differences), [("7/7".to_string(), DifferenceKind::Modified)]);
    let retrieved = fixture.tree.statistics().retrieved - before.retrieved;
    assert!(retrieved < 30, "{retrieved} of {} blocks", fixture.store.all().len());
}
