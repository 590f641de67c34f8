use super::*;
use crate::name_tree::tests::stat;
use wirefs_op::Kind;

fn entry(number: usize) -> DirEntry {
    DirEntry { name: format!("file-{number:07}").into(), next: 1, stat: stat(number as u64, Kind::File) }
}

/// A listing of `count` entries, received in messages of about 1,000.
fn listing(count: usize) -> LongListing {
    let mut listing = LongListing::default();
    for begin in (0..count).step_by(999) {
        listing.append(&mut (begin..count.min(begin + 999)).map(entry).collect());
    }
    listing
}

/// Reads all entries, page by page.
fn read(listing: &mut LongListing) -> Vec<DirEntry> {
    let mut all = Vec::new();
    while all.len() < listing.len() {
        let page = listing.page(all.len()).unwrap();
        let new = &page.entries[all.len() - page.first..];
        assert!(!new.is_empty());
        all.extend_from_slice(new);
    }
    all
}

#[test]
fn entries_are_read_in_the_order_of_appending() {
    for count in [0, 1, PLAIN_MAX, PLAIN_MAX + 1, PLAIN_MAX + PAGE_ENTRIES, 40_000] {
        let mut listing = listing(count);
        let expected: Vec<DirEntry> = (0..count).map(entry).collect();
        assert_eq!((listing.len(), listing.is_empty()), (count, count == 0));
        assert!(read(&mut listing) == expected);
        assert!(listing.whole(count).unwrap() == expected);
        assert!(listing.page(count).unwrap().entries.len() + listing.page(count).unwrap().first == count);
    }
}

#[test]
fn a_long_listing_takes_a_fifth_of_its_unpacked_size() {
    let mut long = listing(100_000);
    read(&mut long);
    assert!(long.bytes() < 100_000 * ENTRY_BYTES / 5, "{}", long.bytes());
    assert_eq!(long.whole(99_999), None);
    assert!(listing(PLAIN_MAX).packed.is_empty());
}

#[test]
fn appending_does_not_modify_a_shared_listing() {
    let freshness = Arc::new(vec![entry(1)]);
    let mut listing = LongListing::from(Arc::clone(&freshness));
    assert!(Arc::ptr_eq(&listing.page(0).unwrap().entries, &freshness));
    listing.append(&mut vec![entry(2)]);
    assert_eq!((freshness.len(), listing.len()), (1, 2));
}
