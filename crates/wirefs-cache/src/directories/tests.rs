use super::*;
use crate::name_tree::ROOT;
use crate::name_tree::tests::stat;
use wirefs_op::Kind;

const WINDOW: Duration = Duration::from_nanos(100);

fn at(now: u64) -> Coherency {
    Coherency::within(Time(now), WINDOW)
}

fn since(at: u64) -> Freshness {
    Freshness::since(Time(at))
}

/// Returns the cached state of a name and its request time.
fn find(dirs: &DirectoryCache, name: &[u8], now: u64) -> Option<(Option<Stat>, u64)> {
    match dirs.find(ROOT, name, &at(now)) {
        CachedLookup::Entry(entry) => Some((Some(entry.stat), entry.name.at.0)),
        CachedLookup::Negative(freshness) => Some((None, freshness.at.0)),
        CachedLookup::Miss => None,
    }
}

fn entry(name: &str, ino: u64) -> DirEntry {
    DirEntry { name: name.into(), next: 1, stat: stat(ino, Kind::File) }
}

fn freshness(when: u64) -> DirectoryCache {
    let mut dirs = DirectoryCache::default();
    dirs.store(ROOT, vec![entry("b", 2), entry("a", 1)], since(when), &at(when));
    dirs
}

#[test]
fn a_complete_listing_answers_lookups_of_absent_names() {
    let dirs = freshness(5);
    assert!(matches!(find(&dirs, b"a", 6), Some((Some(_), _))));
    assert_eq!(find(&dirs, b"zz", 6), Some((None, 5)));
    assert_eq!(find(&dirs, b"zz", 105), None);
}

#[test]
fn own_changes_are_visible_immediately() {
    let mut dirs = freshness(5);
    dirs.removed(ROOT, b"a", since(6), Time(6));
    dirs.added(ROOT, b"c", &stat(3, Kind::File), since(7), Time(7));
    assert_eq!(find(&dirs, b"a", 8), Some((None, 5)));
    let (listing, _) = dirs.snapshot(ROOT, &at(8)).unwrap();
    assert_eq!(listing.iter().map(|e| e.name.clone()).collect::<Vec<_>>(), [b"b".to_vec(), b"c".to_vec()]);
    assert_eq!(find(&dirs, b"a", 8), Some((None, 5)));
}

#[test]
fn own_changes_are_applied_to_a_listing_requested_before() {
    let mut dirs = freshness(5);
    dirs.removed(ROOT, b"a", since(20), Time(20));
    dirs.store(ROOT, vec![entry("a", 1)], since(19), &at(19));
    assert_eq!(find(&dirs, b"a", 21), Some((None, 19)));
    dirs.store(ROOT, vec![entry("a", 1)], since(22), &at(22));
    assert!(matches!(find(&dirs, b"a", 23), Some((Some(_), _))));
}

#[test]
fn an_own_change_is_as_fresh_as_its_request_though_the_listing_is_newer() {
    let mut early = freshness(20);
    early.removed(ROOT, b"a", since(6), Time(30));
    let mut late = DirectoryCache::default();
    late.removed(ROOT, b"a", since(6), Time(30));
    late.store(ROOT, vec![entry("a", 3), entry("b", 2)], since(20), &at(30));
    for mut dirs in [early, late] {
        assert_eq!(find(&dirs, b"a", 105), Some((None, 6)));
        assert_eq!(find(&dirs, b"a", 106), None);
        assert_eq!(find(&dirs, b"zz", 106), Some((None, 20)));
        assert!(dirs.snapshot(ROOT, &at(105)).is_some_and(|(_, freshness)| freshness == since(6)));
        assert_eq!(find(&dirs, b"a", 106), None);
        assert!(dirs.snapshot(ROOT, &at(106)).is_none());
        // The later request makes the name fresher.
        dirs.record_lookup(ROOT, b"a", None, since(31), &at(31));
        assert_eq!(find(&dirs, b"a", 106), Some((None, 20)));
    }
}

#[test]
fn attributes_of_an_own_change_are_as_fresh_as_its_request_though_the_listing_is_newer() {
    let mut dirs = freshness(20);
    let written = Stat { size: 7, ..stat(1, Kind::File) };
    dirs.touched(ROOT, b"a", &written, Time(6));
    assert_eq!(find(&dirs, b"a", 30), Some((Some(written), 6)));
    dirs.touched(ROOT, b"a", &written, Time(25));
    assert_eq!(find(&dirs, b"a", 106), None);
}

#[test]
fn requests_before_and_after_an_own_change_are_distinguished() {
    let mut dirs = freshness(5);
    dirs.removed(ROOT, b"a", since(20), Time(20));
    assert!(dirs.is_changed_since(ROOT, b"a", Time(19)));
    assert!(!dirs.is_changed_since(ROOT, b"b", Time(19)));
    assert!(!dirs.is_changed_since(ROOT, b"a", Time(21)));
}

#[test]
fn a_listing_requested_before_a_change_with_unknown_result_is_not_cached() {
    let mut dirs = freshness(5);
    dirs.changed(ROOT, Time(20));
    assert!(dirs.is_changed_since(ROOT, b"b", Time(19)));
    dirs.store(ROOT, vec![entry("a", 1)], since(19), &at(19));
    assert_eq!(find(&dirs, b"a", 21), None);
    dirs.store(ROOT, vec![entry("a", 1)], since(21), &at(21));
    assert!(matches!(find(&dirs, b"a", 22), Some((Some(_), _))));
}

#[test]
fn a_name_found_after_a_listing_does_not_become_absent_again() {
    let mut dirs = freshness(5);
    dirs.record_lookup(ROOT, b"c", Some(&stat(3, Kind::File)), since(4), &at(4));
    assert_eq!(find(&dirs, b"c", 8), Some((None, 5)));
    dirs.record_lookup(ROOT, b"c", Some(&stat(3, Kind::File)), since(6), &at(6));
    assert!(matches!(find(&dirs, b"c", 8), Some((Some(_), _))));
    dirs.record_lookup(ROOT, b"a", None, since(6), &at(6));
    assert_eq!(find(&dirs, b"a", 8), Some((None, 5)));
}

#[test]
fn expired_listings_are_removed() {
    let mut dirs = freshness(5);
    dirs.expire(&at(105), |_| true);
    assert_eq!(dirs.entries, 0);
}

const LEASED: Freshness = Freshness { at: Time(50), leased: true };

/// Valid leases and a window of zero.
fn leases(now: u64) -> Coherency {
    Coherency {
        now: Time(now),
        window: Duration::ZERO,
        requested_after: None,
        leased_since: Some(Time(0)),
        leases_valid: true,
    }
}

fn leased(ino: u64) -> Stat {
    Stat { leased: true, ..stat(ino, Kind::File) }
}

fn leased_entry(name: &str, ino: u64) -> DirEntry {
    DirEntry { name: name.into(), next: 1, stat: leased(ino) }
}

fn leased_listing() -> DirectoryCache {
    let mut dirs = DirectoryCache::default();
    dirs.store(ROOT, vec![leased_entry("a", 1), leased_entry("b", 2)], LEASED, &leases(60));
    dirs
}

#[test]
fn an_invalidated_name_is_a_miss_and_the_others_are_not() {
    let mut dirs = leased_listing();
    dirs.invalidate_name(ROOT, b"a");
    dirs.invalidate_name(ROOT, b"new");
    let coherency = leases(70);
    assert_eq!(dirs.find(ROOT, b"a", &coherency), CachedLookup::Miss);
    assert_eq!(dirs.find(ROOT, b"new", &coherency), CachedLookup::Miss);
    assert!(matches!(dirs.find(ROOT, b"b", &coherency), CachedLookup::Entry(_)));
    assert_eq!(dirs.find(ROOT, b"zz", &coherency), CachedLookup::Negative(LEASED));
    assert!(dirs.snapshot(ROOT, &coherency).is_none());
    let since = Freshness { at: Time(80), leased: true };
    dirs.record_lookup(ROOT, b"a", None, since, &coherency);
    dirs.record_lookup(ROOT, b"new", Some(&leased(3)), since, &coherency);
    let (listing, freshness) = dirs.snapshot(ROOT, &leases(90)).unwrap();
    assert_eq!(listing.iter().map(|e| e.name.clone()).collect::<Vec<_>>(), [b"b".to_vec(), b"new".to_vec()]);
    assert_eq!(freshness, LEASED);
}

#[test]
fn recalled_attributes_are_not_leased_in_earlier_listings() {
    let mut dirs = leased_listing();
    dirs.outdate(stat(1, Kind::File).id, Time(60));
    let found = |dirs: &DirectoryCache, name: &[u8]| match dirs.find(ROOT, name, &leases(70)) {
        CachedLookup::Entry(entry) => (entry.name.leased, entry.attributes.leased),
        other => panic!("{other:?}"),
    };
    assert_eq!(found(&dirs, b"a"), (true, false));
    assert_eq!(found(&dirs, b"b"), (true, true));
    dirs.record_lookup(ROOT, b"a", Some(&leased(1)), Freshness { at: Time(65), leased: true }, &leases(70));
    dirs.store(ROOT, vec![leased_entry("a", 1)], Freshness { at: Time(65), leased: true }, &leases(70));
    assert_eq!(found(&dirs, b"a"), (true, true));
}

#[test]
fn a_validated_name_does_not_restore_recalled_attributes() {
    let mut dirs = DirectoryCache::default();
    dirs.record_lookup(ROOT, b"a", Some(&leased(1)), LEASED, &leases(60));
    dirs.outdate(stat(1, Kind::File).id, Time(60));
    dirs.record_lookup(
        ROOT,
        b"a",
        Some(&stat(1, Kind::File)),
        Freshness { at: Time(65), leased: true },
        &leases(70),
    );
    let CachedLookup::Entry(entry) = dirs.find(ROOT, b"a", &leases(70)) else { panic!("a cached entry") };
    assert!(entry.name.leased && !entry.attributes.leased, "the reply granted no lease on the attributes");
}

#[test]
fn single_leased_names_are_cached_without_a_listing() {
    let mut dirs = DirectoryCache::default();
    dirs.record_lookup(ROOT, b"a", Some(&leased(1)), LEASED, &leases(60));
    dirs.record_lookup(ROOT, b"b", None, LEASED, &leases(60));
    dirs.added(ROOT, b"c", &leased(3), LEASED, Time(60));
    assert!(matches!(dirs.find(ROOT, b"a", &leases(1 << 40)), CachedLookup::Entry(_)));
    assert_eq!(dirs.find(ROOT, b"b", &leases(1 << 40)), CachedLookup::Negative(LEASED));
    assert!(matches!(dirs.find(ROOT, b"c", &leases(1 << 40)), CachedLookup::Entry(_)));
    assert_eq!(dirs.find(ROOT, b"d", &leases(60)), CachedLookup::Miss);
    assert!(dirs.snapshot(ROOT, &leases(60)).is_none());
    dirs.invalidate_name(ROOT, b"a");
    assert_eq!(dirs.find(ROOT, b"a", &leases(70)), CachedLookup::Miss);
    dirs.expire(&leases(1 << 40), |_| true);
    assert_eq!(dirs.find(ROOT, b"b", &leases(1 << 40)), CachedLookup::Negative(LEASED));
    dirs.expire(&leases(1 << 40), |_| false);
    assert_eq!(dirs.find(ROOT, b"b", &leases(1 << 40)), CachedLookup::Miss);
}

#[test]
fn single_names_are_limited_per_directory() {
    let mut dirs = DirectoryCache::default();
    for index in 0..3 * SINGLE_MAX as u32 {
        dirs.record_lookup(ROOT, &index.to_le_bytes(), None, LEASED, &leases(60));
    }
    assert!(dirs.cached.get(&ROOT).is_none_or(|directory| directory.singles.len() <= SINGLE_MAX + 1));
}

#[test]
fn a_leased_listing_is_not_replaced_by_an_unleased_one() {
    let mut dirs = leased_listing();
    dirs.store(ROOT, vec![entry("a", 1)], Freshness::since(Time(70)), &leases(80));
    assert_eq!(dirs.find(ROOT, b"zz", &leases(80)), CachedLookup::Negative(LEASED));
    dirs.invalidate(ROOT);
    assert_eq!(dirs.find(ROOT, b"zz", &leases(80)), CachedLookup::Miss);
}

#[test]
fn an_invalidated_own_change_is_not_leased_when_applied_to_a_listing() {
    let mut dirs = DirectoryCache::default();
    dirs.removed(ROOT, b"a", LEASED, Time(60));
    dirs.invalidate_name(ROOT, b"a");
    dirs.store(ROOT, vec![leased_entry("a", 1)], Freshness { at: Time(55), leased: true }, &leases(70));
    assert_eq!(dirs.find(ROOT, b"a", &leases(70)), CachedLookup::Miss);
}

#[test]
fn single_names_are_limited_over_all_directories() {
    let mut dirs = DirectoryCache::default();
    let singles_max = dirs.singles_max();
    for dir in 0..3 * singles_max as u64 / 64 {
        for name in 0..64u8 {
            dirs.record_lookup(TreeNodeId(dir), &[name], None, LEASED, &leases(60));
        }
    }
    let total: usize = dirs.cached.values().map(|directory| directory.singles.len()).sum();
    assert!(total > 0 && total <= singles_max, "{total}");
}
