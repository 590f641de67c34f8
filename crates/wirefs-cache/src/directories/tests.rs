use super::*;
use crate::names::ROOT;
use crate::names::tests::stat;
use wirefs_op::Kind;

const WINDOW: Duration = Duration::from_nanos(100);

fn entry(name: &str, ino: u64) -> DirEntry {
    DirEntry { name: name.into(), next: 1, stat: stat(ino, Kind::File) }
}

fn known(at: u64) -> Directories {
    let mut dirs = Directories::default();
    dirs.store(ROOT, vec![entry("b", 2), entry("a", 1)], Time(at));
    dirs
}

#[test]
fn a_complete_listing_answers_names_that_are_not_there() {
    let dirs = known(5);
    assert!(matches!(dirs.find(ROOT, b"a", Time(6), WINDOW), Found::Entry(..)));
    assert_eq!(dirs.find(ROOT, b"zz", Time(6), WINDOW), Found::Absent(Time(5)));
    assert_eq!(dirs.find(ROOT, b"zz", Time(105), WINDOW), Found::Unknown);
}

#[test]
fn own_changes_show_at_once() {
    let mut dirs = known(5);
    dirs.removed(ROOT, b"a", Time(6));
    dirs.added(ROOT, b"c", &stat(3, Kind::File), Time(7));
    assert_eq!(dirs.find(ROOT, b"a", Time(8), WINDOW), Found::Absent(Time(5)));
    let (listing, _) = dirs.snapshot(ROOT, Time(8), WINDOW).unwrap();
    assert_eq!(listing.iter().map(|e| e.name.clone()).collect::<Vec<_>>(), [b"b".to_vec(), b"c".to_vec()]);
    assert_eq!(dirs.find(ROOT, b"a", Time(8), WINDOW), Found::Absent(Time(5)));
}

#[test]
fn a_listing_asked_for_before_an_own_change_is_put_right() {
    let mut dirs = known(5);
    dirs.removed(ROOT, b"a", Time(20));
    dirs.store(ROOT, vec![entry("a", 1)], Time(19));
    assert_eq!(dirs.find(ROOT, b"a", Time(21), WINDOW), Found::Absent(Time(19)));
    dirs.store(ROOT, vec![entry("a", 1)], Time(22));
    assert!(matches!(dirs.find(ROOT, b"a", Time(23), WINDOW), Found::Entry(..)));
}

#[test]
fn what_was_asked_for_before_an_own_change_is_told_from_what_was_asked_for_after() {
    let mut dirs = known(5);
    dirs.removed(ROOT, b"a", Time(20));
    assert!(dirs.is_changed_since(ROOT, b"a", Time(19)));
    assert!(!dirs.is_changed_since(ROOT, b"b", Time(19)));
    assert!(!dirs.is_changed_since(ROOT, b"a", Time(21)));
}

#[test]
fn a_listing_asked_for_before_a_change_that_nobody_described_is_not_believed() {
    let mut dirs = known(5);
    dirs.changed(ROOT, Time(20));
    assert!(dirs.is_changed_since(ROOT, b"b", Time(19)));
    dirs.store(ROOT, vec![entry("a", 1)], Time(19));
    assert_eq!(dirs.find(ROOT, b"a", Time(21), WINDOW), Found::Unknown);
    dirs.store(ROOT, vec![entry("a", 1)], Time(21));
    assert!(matches!(dirs.find(ROOT, b"a", Time(22), WINDOW), Found::Entry(..)));
}

#[test]
fn a_name_found_after_a_listing_is_not_absent_again() {
    let mut dirs = known(5);
    dirs.found(ROOT, b"c", Some(&stat(3, Kind::File)), Time(4));
    assert_eq!(dirs.find(ROOT, b"c", Time(8), WINDOW), Found::Absent(Time(5)));
    dirs.found(ROOT, b"c", Some(&stat(3, Kind::File)), Time(6));
    assert!(matches!(dirs.find(ROOT, b"c", Time(8), WINDOW), Found::Entry(..)));
    dirs.found(ROOT, b"a", None, Time(6));
    assert_eq!(dirs.find(ROOT, b"a", Time(8), WINDOW), Found::Absent(Time(5)));
}

#[test]
fn expired_listings_are_dropped() {
    let mut dirs = known(5);
    dirs.expire(Time(105), WINDOW);
    assert_eq!(dirs.entries, 0);
}
