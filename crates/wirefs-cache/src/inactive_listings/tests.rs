use super::*;
use crate::name_tree::tests::stat;
use std::time::Duration;
use wirefs_op::Kind;

fn id(ino: u64) -> FileId {
    stat(ino, Kind::Directory).id
}

fn packed(names: &[&str]) -> PackedListing {
    let entries = names.iter().map(|name| (name.as_bytes(), stat(7, Kind::File)));
    PackedListing::new(&stat(1, Kind::Directory), entries, Time(3), true)
}

fn names(packed: &PackedListing) -> Vec<String> {
    let (entries, is_complete) = packed.unpack().unwrap();
    assert!(is_complete);
    entries.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()).collect()
}

#[test]
fn a_listing_is_taken_once() {
    let mut inactive = InactiveListings::default();
    inactive.put(id(2), packed(&["a", "b"]));
    inactive.put(id(2), packed(&["a", "c"]));
    assert_eq!(inactive.len(), 1);
    assert_eq!(names(&inactive.take(id(2)).unwrap()), ["a", "c"]);
    assert_eq!(inactive.take(id(2)), None);
    assert_eq!((inactive.bytes(), inactive.is_empty()), (0, true));
}

#[test]
fn a_listing_is_whole_unless_incomplete_or_partly_invalidated() {
    let mut inactive = InactiveListings::default();
    let since = |since| Coherency {
        now: Time(5),
        window: Duration::ZERO,
        requested_after: None,
        leased_since: Some(Time(since)),
        leases_valid: true,
    };
    inactive.put(id(2), packed(&["a"]));
    inactive.put(id(3), PackedListing::new(&stat(1, Kind::Directory), [].into_iter(), Time(3), false));
    assert!(inactive.has_whole(id(2), &since(0)));
    assert!(!inactive.has_whole(id(2), &since(3)), "it is no longer leased");
    assert!(!inactive.has_whole(id(3), &since(0)));
    assert!(!inactive.has_whole(id(4), &since(0)));
    inactive.invalidate_name(id(2), b"a");
    assert!(!inactive.has_whole(id(2), &since(0)));
}

#[test]
fn the_oldest_listings_are_evicted() {
    let one = packed(&["a"]).cost();
    let mut inactive = InactiveListings::with_limit(3 * one);
    for ino in 1..=4 {
        inactive.put(id(ino), packed(&["a"]));
        inactive.put(id(1), packed(&["a"]));
    }
    assert_eq!(inactive.bytes(), 3 * one);
    let remaining: Vec<u64> = inactive.drain().map(|(dir, _)| dir.ino).collect();
    assert_eq!(remaining, [1, 3, 4], "a listing inserted again is not the oldest");
    inactive.put(id(5), packed(&["a"]));
    assert_eq!(inactive.len(), 1);
}

#[test]
fn invalidated_names_are_recorded_up_to_a_limit() {
    let mut inactive = InactiveListings::default();
    inactive.put(id(2), packed(&["a"]));
    for _ in 0..INVALIDATED_MAX {
        inactive.invalidate_name(id(2), b"a");
    }
    assert_eq!(inactive.listings[&id(2)].invalidated().len(), INVALIDATED_MAX);
    assert_eq!(inactive.listings[&id(2)].clone().into_data(), None);
    inactive.invalidate_name(id(2), b"a");
    assert!(inactive.is_empty());
}

#[test]
fn corrupt_bytes_unpack_to_nothing() {
    let whole = packed(&["a", "b"]).into_data().unwrap();
    for end in 0..whole.len() {
        let cut = PackedListing::from_data(whole.slice(..end), Time(1));
        assert!(cut.unpack().is_none_or(|(entries, _)| entries.len() < 2), "{end}");
    }
    assert_eq!(names(&PackedListing::from_data(whole, Time(1))), ["a", "b"]);
}
