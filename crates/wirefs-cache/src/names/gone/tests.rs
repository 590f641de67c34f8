use crate::names::tests::stat;
use crate::names::{Names, ROOT};
use crate::trust::{Known, Trust};
use std::time::Duration;
use wirefs_op::{Kind, Stat, Time};

const TRUST: Trust = Trust {
    now: Time(30),
    window: Duration::from_nanos(100),
    asked_after: None,
    leased_since: None,
    is_valid: false,
};

/// A file that was written, by a change sent at 10 and answered at 20, and forgotten.
fn forgotten() -> Names {
    let mut names = Names::new(stat(1, Kind::Directory), Known::since(Time(0)));
    let (file, _) = names.learn(&stat(3, Kind::File), Known::since(Time(1)), &TRUST);
    names.link(ROOT, b"file", file);
    let written = Stat { size: 7, ..stat(3, Kind::File) };
    names.changed(file, Some(&written), Known::since(Time(10)), Time(20));
    names.drop_if_free(file);
    assert!(names.node(file).is_none());
    names
}

#[test]
fn what_was_asked_for_before_an_own_change_does_not_count_once_the_node_was_forgotten() {
    let mut names = forgotten();
    let (file, counts) = names.learn(&stat(3, Kind::File), Known::since(Time(15)), &TRUST);
    assert!(!counts);
    let node = names.node(file).unwrap();
    assert_eq!((node.stat.size, node.known), (7, Some(Known::since(Time(10)))));
    let (_, counts) = names.learn(&stat(3, Kind::File), Known::since(Time(25)), &TRUST);
    assert!(counts);
    assert!(names.node(file).unwrap().is_fresh(&TRUST));
}

#[test]
fn what_was_doubted_while_it_was_forgotten_is_not_believed_again() {
    let mut names = forgotten();
    names.doubt_file(stat(3, Kind::File).id);
    let (file, _) = names.learn(&stat(3, Kind::File), Known::since(Time(15)), &TRUST);
    assert_eq!(names.node(file).unwrap().known, None);
}

#[test]
fn what_was_asked_for_since_counts() {
    let mut names = forgotten();
    let (file, counts) = names.learn(&stat(3, Kind::File), Known::since(Time(25)), &TRUST);
    assert!(counts);
    assert_eq!(names.node(file).unwrap().stat.size, 0);
}

#[test]
fn own_changes_of_long_ago_are_not_remembered() {
    let mut names = forgotten();
    names.expire(Time(20) + super::GONE_FOR);
    assert!(names.gone.nodes.is_empty() && names.gone.order.is_empty());
}

#[test]
fn of_more_own_changes_than_are_remembered_none_is_undone() {
    let mut names = forgotten();
    for ino in 100..100 + super::GONE_MAX as u64 {
        let (file, _) = names.learn(&stat(ino, Kind::File), Known::since(Time(21)), &TRUST);
        names.changed(file, None, Known::since(Time(22)), Time(23));
        names.drop_if_free(file);
    }
    assert_eq!(names.gone.nodes.len(), super::GONE_MAX);
    let (file, counts) = names.learn(&stat(3, Kind::File), Known::since(Time(15)), &TRUST);
    assert!(!counts && !names.node(file).unwrap().is_fresh(&TRUST));
}
