use crate::coherency::{Coherency, Freshness};
use crate::directories::DirectoryCache;
use crate::name_tree::TreeNodeId;
use crate::name_tree::tests::stat;
use std::time::Duration;
use wirefs_op::{DirEntry, Kind, Stat, Time};

const DIR: TreeNodeId = TreeNodeId(9);
const LEASED: Freshness = Freshness { at: Time(50), leased: true };

fn leases() -> Coherency {
    Coherency {
        now: Time(60),
        window: Duration::ZERO,
        requested_after: None,
        leased_since: Some(Time(1)),
        leases_valid: true,
    }
}

fn leased(ino: u64) -> Stat {
    Stat { leased: true, ..stat(ino, Kind::File) }
}

/// A directory with ten single names, each recorded ten times.
fn ten() -> DirectoryCache {
    let mut dirs = DirectoryCache::default();
    for name in (0..100u8).map(|index| [index % 10]) {
        dirs.record_lookup(DIR, &name, Some(&leased(7)), LEASED, &leases());
    }
    dirs
}

#[test]
fn a_name_counts_once_however_often_it_is_recorded() {
    let mut dirs = ten();
    let one = dirs.bytes() / 10;
    assert!(one > 0);
    dirs.added(DIR, &[3], &leased(8), LEASED, Time(60));
    assert_eq!(dirs.bytes(), 10 * one);
    dirs.added(DIR, b"new", &leased(9), LEASED, Time(60));
    assert_eq!(dirs.bytes(), 11 * one);
    dirs.invalidate_name(DIR, b"new");
    dirs.invalidate_name(DIR, b"never there");
    assert_eq!(dirs.bytes(), 10 * one);
}

#[test]
fn evicted_names_do_not_count() {
    let mut dirs = ten();
    dirs.invalidate(DIR);
    assert_eq!(dirs.bytes(), 0);
    let mut dirs = ten();
    dirs.invalidate_all();
    assert_eq!(dirs.bytes(), 0);
    let mut dirs = ten();
    dirs.expire(&leases(), |_| false);
    assert_eq!(dirs.bytes(), 0);
}

#[test]
fn a_listing_replaces_single_names() {
    let listing = || vec![DirEntry { name: "a".into(), next: 1, stat: leased(1) }];
    let mut listed = DirectoryCache::default();
    listed.store(DIR, listing(), LEASED, &leases());
    let mut dirs = ten();
    dirs.store(DIR, listing(), Freshness { at: Time(55), leased: true }, &leases());
    assert_eq!(dirs.bytes(), listed.bytes());
}

#[test]
fn the_limit_of_single_names_follows_the_limit_of_entries() {
    let mut dirs = DirectoryCache::with_limit(100);
    for name in 0..1000u32 {
        dirs.record_lookup(TreeNodeId(u64::from(name / 10)), &name.to_le_bytes(), None, LEASED, &leases());
        assert!(dirs.bytes() <= 50 * 400, "{}", dirs.bytes());
    }
    assert!(dirs.bytes() > 0);
}
