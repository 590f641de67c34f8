use crate::coherency::{Coherency, Freshness};
use crate::directories::DirectoryCache;
use crate::name_tree::ROOT;
use crate::name_tree::tests::stat;
use crate::{CachedLookup, TreeNodeId};
use std::time::Duration;
use wirefs_op::{DirEntry, Kind, Stat, Time};

const DIR: TreeNodeId = TreeNodeId(9);

fn leased(ino: u64) -> Stat {
    Stat { leased: true, ..stat(ino, Kind::File) }
}

fn coherency(now: u64) -> Coherency {
    Coherency {
        now: Time(now),
        window: Duration::ZERO,
        requested_after: None,
        leased_since: Some(Time(0)),
        leases_valid: true,
    }
}

fn freshness(at: u64) -> Freshness {
    Freshness { at: Time(at), leased: true }
}

fn listed(at: u64) -> DirectoryCache {
    let mut dirs = DirectoryCache::default();
    let entry = |name: &str, ino| DirEntry { name: name.into(), next: 1, stat: leased(ino) };
    dirs.store(ROOT, vec![entry("a", 1), entry("b", 2), entry("c", 3)], freshness(at), &coherency(at));
    dirs
}

/// Returns the inode number of an existing name, and whether its attributes are leased.
fn find(dirs: &DirectoryCache, name: &[u8]) -> Option<Option<(u64, bool)>> {
    match dirs.find(DIR, name, &coherency(50)) {
        CachedLookup::Entry(entry) => Some(Some((entry.stat.id.ino, entry.attributes.leased))),
        CachedLookup::Negative(_) => Some(None),
        CachedLookup::Miss => None,
    }
}

#[test]
fn a_packed_listing_round_trips() {
    let mut dirs = listed(5);
    dirs.removed(ROOT, b"a", freshness(6), Time(6));
    let packed = dirs.pack(ROOT, &leased(7), &coherency(7), |_| None).unwrap();
    let mut again = DirectoryCache::default();
    again.unpack(DIR, &packed, &coherency(8));
    assert_eq!(find(&again, b"a"), Some(None));
    assert_eq!(find(&again, b"b"), Some(Some((2, true))));
    assert_eq!(find(&again, b"zz"), Some(None));
}

#[test]
fn names_invalidated_before_or_after_packing_stay_invalid() {
    let mut dirs = listed(5);
    dirs.outdate(stat(2, Kind::File).id, Time(6));
    let packed = dirs.pack(ROOT, &leased(7), &coherency(7), |_| None).unwrap();
    let mut again = DirectoryCache::default();
    again.outdate(stat(3, Kind::File).id, Time(8));
    again.unpack(DIR, &packed, &coherency(9));
    assert_eq!(find(&again, b"a"), Some(Some((1, true))));
    assert_eq!(find(&again, b"b"), Some(Some((2, false))));
    assert_eq!(find(&again, b"c"), Some(Some((3, false))));
}

#[test]
fn the_valid_part_of_a_listing_and_of_single_names_is_packed() {
    let mut dirs = listed(5);
    dirs.invalidate_name(ROOT, b"a");
    let packed = dirs.pack(ROOT, &leased(7), &coherency(9), |_| None).unwrap();
    let mut again = DirectoryCache::default();
    again.unpack(DIR, &packed, &coherency(10));
    assert_eq!(find(&again, b"a"), None);
    assert_eq!(find(&again, b"b"), Some(Some((2, true))));
    assert_eq!(find(&again, b"zz"), None);

    let mut dirs = DirectoryCache::default();
    dirs.record_lookup(ROOT, b"there", Some(&leased(4)), freshness(5), &coherency(5));
    dirs.record_lookup(ROOT, b"absent", None, freshness(6), &coherency(6));
    let packed = dirs.pack(ROOT, &leased(7), &coherency(9), |_| None).unwrap();
    let mut again = DirectoryCache::default();
    again.unpack(DIR, &packed, &coherency(10));
    assert_eq!(find(&again, b"there"), Some(Some((4, true))));
    assert_eq!(find(&again, b"absent"), None, "neither confirmed nor denied");
    assert_eq!(find(&again, b"zz"), None);
}

#[test]
fn unleased_names_are_not_packed() {
    let mut dirs = DirectoryCache::default();
    let entry = DirEntry { name: "a".into(), next: 1, stat: stat(1, Kind::File) };
    dirs.store(ROOT, vec![entry], Freshness::since(Time(5)), &coherency(5));
    assert_eq!(dirs.pack(ROOT, &leased(7), &coherency(9), |_| None), None);
    assert_eq!(dirs.pack(DIR, &leased(7), &coherency(9), |_| None), None);
}

#[test]
fn unpacking_does_not_overwrite_cached_names() {
    let packed = listed(5).pack(ROOT, &leased(7), &coherency(7), |_| None).unwrap();
    let mut again = DirectoryCache::default();
    again.store(DIR, Vec::new(), freshness(9), &coherency(9));
    again.unpack(DIR, &packed, &coherency(10));
    assert_eq!(find(&again, b"a"), Some(None));
}
