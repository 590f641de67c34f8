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
fn what_is_put_there_is_taken_off_once() {
    let mut shelf = InactiveListings::default();
    shelf.put(id(2), packed(&["a", "b"]));
    shelf.put(id(2), packed(&["a", "c"]));
    assert_eq!(shelf.len(), 1);
    assert_eq!(names(&shelf.take(id(2)).unwrap()), ["a", "c"]);
    assert_eq!(shelf.take(id(2)), None);
    assert_eq!((shelf.bytes(), shelf.is_empty()), (0, true));
}

#[test]
fn a_listing_is_whole_unless_a_name_was_left_out_or_taken_back() {
    let mut shelf = InactiveListings::default();
    let since = |since| Coherency {
        now: Time(5),
        window: Duration::ZERO,
        requested_after: None,
        leased_since: Some(Time(since)),
        leases_valid: true,
    };
    shelf.put(id(2), packed(&["a"]));
    shelf.put(id(3), PackedListing::new(&stat(1, Kind::Directory), [].into_iter(), Time(3), false));
    assert!(shelf.has_whole(id(2), &since(0)));
    assert!(!shelf.has_whole(id(2), &since(3)), "it is not leased any more");
    assert!(!shelf.has_whole(id(3), &since(0)));
    assert!(!shelf.has_whole(id(4), &since(0)));
    shelf.invalidate_name(id(2), b"a");
    assert!(!shelf.has_whole(id(2), &since(0)));
}

#[test]
fn the_oldest_make_room() {
    let one = packed(&["a"]).cost();
    let mut shelf = InactiveListings::with_limit(3 * one);
    for ino in 1..=4 {
        shelf.put(id(ino), packed(&["a"]));
        shelf.put(id(1), packed(&["a"]));
    }
    assert_eq!(shelf.bytes(), 3 * one);
    let kept: Vec<u64> = shelf.drain().map(|(dir, _)| dir.ino).collect();
    assert_eq!(kept, [1, 3, 4], "the one that was put there again is not the oldest");
    shelf.put(id(5), packed(&["a"]));
    assert_eq!(shelf.len(), 1);
}

#[test]
fn names_that_were_taken_back_are_remembered_up_to_a_limit() {
    let mut shelf = InactiveListings::default();
    shelf.put(id(2), packed(&["a"]));
    for _ in 0..INVALIDATED_MAX {
        shelf.invalidate_name(id(2), b"a");
    }
    assert_eq!(shelf.listings[&id(2)].invalidated().len(), INVALIDATED_MAX);
    assert_eq!(shelf.listings[&id(2)].clone().into_data(), None);
    shelf.invalidate_name(id(2), b"a");
    assert!(shelf.is_empty());
}

#[test]
fn bytes_that_are_no_listing_are_not_believed() {
    let whole = packed(&["a", "b"]).into_data().unwrap();
    for end in 0..whole.len() {
        let cut = PackedListing::from_data(whole.slice(..end), Time(1));
        assert!(cut.unpack().is_none_or(|(entries, _)| entries.len() < 2), "{end}");
    }
    assert_eq!(names(&PackedListing::from_data(whole, Time(1))), ["a", "b"]);
}
