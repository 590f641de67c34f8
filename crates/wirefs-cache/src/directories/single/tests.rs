use crate::directories::Directories;
use crate::names::TreeNodeId;
use crate::names::tests::stat;
use crate::trust::{Known, Trust};
use std::time::Duration;
use wirefs_op::{DirEntry, Kind, Stat, Time};

const DIR: TreeNodeId = TreeNodeId(9);
const LEASED: Known = Known { at: Time(50), leased: true };

fn leases() -> Trust {
    Trust {
        now: Time(60),
        window: Duration::ZERO,
        asked_after: None,
        leased_since: Some(Time(1)),
        is_valid: true,
    }
}

fn leased(ino: u64) -> Stat {
    Stat { leased: true, ..stat(ino, Kind::File) }
}

/// A directory of which ten names are known singly; each was told ten times.
fn ten() -> Directories {
    let mut dirs = Directories::default();
    for name in (0..100u8).map(|index| [index % 10]) {
        dirs.found(DIR, &name, Some(&leased(7)), LEASED, &leases());
    }
    dirs
}

#[test]
fn a_name_counts_once_however_often_it_is_told() {
    let mut dirs = ten();
    let one = dirs.bytes() / 10;
    assert!(one > 0);
    dirs.added(DIR, &[3], &leased(8), LEASED, Time(60));
    assert_eq!(dirs.bytes(), 10 * one);
    dirs.added(DIR, b"new", &leased(9), LEASED, Time(60));
    assert_eq!(dirs.bytes(), 11 * one);
    dirs.doubt_name(DIR, b"new");
    dirs.doubt_name(DIR, b"never there");
    assert_eq!(dirs.bytes(), 10 * one);
}

#[test]
fn what_is_forgotten_does_not_count() {
    let mut dirs = ten();
    dirs.doubt(DIR);
    assert_eq!(dirs.bytes(), 0);
    let mut dirs = ten();
    dirs.doubt_all();
    assert_eq!(dirs.bytes(), 0);
    let mut dirs = ten();
    dirs.expire(&leases(), |_| false);
    assert_eq!(dirs.bytes(), 0);
}

#[test]
fn a_listing_takes_the_place_of_single_names() {
    let listing = || vec![DirEntry { name: "a".into(), next: 1, stat: leased(1) }];
    let mut listed = Directories::default();
    listed.store(DIR, listing(), LEASED, &leases());
    let mut dirs = ten();
    dirs.store(DIR, listing(), Known { at: Time(55), leased: true }, &leases());
    assert_eq!(dirs.bytes(), listed.bytes());
}

#[test]
fn there_are_fewer_where_fewer_entries_are_remembered() {
    let mut dirs = Directories::with_limit(100);
    for name in 0..1000u32 {
        dirs.found(TreeNodeId(u64::from(name / 10)), &name.to_le_bytes(), None, LEASED, &leases());
        assert!(dirs.bytes() <= 50 * 400, "{}", dirs.bytes());
    }
    assert!(dirs.bytes() > 0);
}
