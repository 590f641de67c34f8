use super::*;
use std::time::Duration;
use wirefs_op::{Kind, Timestamp};

pub(crate) fn stat(ino: u64, kind: Kind) -> Stat {
    Stat {
        id: FileId { fs: 0, ino, generation: 0 },
        kind,
        version: 1,
        mode: 0o644,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 0,
        blocks: 0,
        blksize: 4096,
        atime: Timestamp::default(),
        mtime: Timestamp::default(),
        ctime: Timestamp::default(),
        without_xattrs: true,
    }
}

fn tree() -> (Names, NodeId, NodeId) {
    let mut names = Names::new(stat(1, Kind::Directory), Time(0));
    let dir = names.learn(&stat(2, Kind::Directory), Time(1));
    names.link(ROOT, b"dir", dir);
    names.count(dir);
    let file = names.learn(&stat(3, Kind::File), Time(1));
    names.link(dir, b"file", file);
    names.count(file);
    (names, dir, file)
}

#[test]
fn a_path_follows_the_directory_when_it_is_renamed() {
    let (mut names, _, file) = tree();
    names.rename((ROOT, b"dir"), (ROOT, b"moved"), false);
    assert_eq!(names.path(file).unwrap().as_bytes(), b"moved/file");
}

#[test]
fn an_exchange_swaps_both_names() {
    let (mut names, dir, file) = tree();
    let other = names.learn(&stat(4, Kind::File), Time(1));
    names.link(ROOT, b"other", other);
    names.rename((dir, b"file"), (ROOT, b"other"), true);
    assert_eq!(names.path(file).unwrap().as_bytes(), b"other");
    assert_eq!(names.path(other).unwrap().as_bytes(), b"dir/file");
}

#[test]
fn a_file_keeps_a_path_as_long_as_one_name_is_left() {
    let (mut names, dir, file) = tree();
    names.link(ROOT, b"second", file);
    assert_eq!(names.unlink(dir, b"file"), Some(file));
    assert_eq!(names.path(file).unwrap().as_bytes(), b"second");
    names.unlink(ROOT, b"second");
    assert!(names.path(file).is_none());
}

#[test]
fn attributes_asked_for_before_a_local_change_do_not_undo_it() {
    let (mut names, _, file) = tree();
    let mut after = stat(3, Kind::File);
    after.size = 7;
    names.changed(file, Some(&after), Time(8), Time(10));
    names.learn(&stat(3, Kind::File), Time(9));
    assert_eq!(names.node(file).unwrap().stat.size, 7);
    names.learn(&stat(3, Kind::File), Time(11));
    assert_eq!(names.node(file).unwrap().stat.size, 0);
}

#[test]
fn freshness_ends_with_the_window() {
    let (names, _, file) = tree();
    let window = Duration::from_nanos(5);
    assert!(names.node(file).unwrap().is_fresh(Time(5), window));
    assert!(!names.node(file).unwrap().is_fresh(Time(6), window));
}

#[test]
fn a_forgotten_node_is_gone_once_nothing_holds_it() {
    let (mut names, dir, file) = tree();
    names.hold(file);
    names.forget(file, 1);
    assert!(names.node(file).is_some());
    names.release(file);
    assert!(names.node(file).is_none() && names.child(dir, b"file").is_none());
    assert_ne!(names.learn(&stat(3, Kind::File), Time(2)), file);
}

#[test]
fn of_several_names_the_one_that_was_seen_last_makes_the_path() {
    let (mut names, dir, file) = tree();
    names.link(ROOT, b"zz", file);
    assert_eq!(names.path(file).unwrap().as_bytes(), b"zz");
    names.link(dir, b"file", file);
    assert_eq!(names.path(file).unwrap().as_bytes(), b"dir/file");
    names.unlink(dir, b"file");
    assert_eq!(names.path(file).unwrap().as_bytes(), b"zz");
}
