use super::{LISTINGS_MAX, Listings};
use std::sync::Arc;
use wirefs_op::{DirEntry, FileId, Kind, Stat};

fn id(ino: u64, generation: u32) -> FileId {
    FileId { fs: 0, ino, generation }
}

fn listing(name: &str) -> Arc<Vec<DirEntry>> {
    Arc::new(vec![DirEntry { name: name.into(), next: 1, stat: Stat::blank(id(100, 1), Kind::File) }])
}

#[test]
fn an_object_with_a_reused_inode_number_has_no_listing() {
    let mut listings = Listings::default();
    listings.keep(id(7, 1), &listing("old"));
    assert_eq!(listings.of(id(7, 2)), None);
    assert_eq!(listings.of(FileId { fs: 1, ..id(7, 1) }), None);
    listings.keep(id(7, 2), &listing("new"));
    listings.end(id(7, 2));
    assert_eq!(listings.of(id(7, 1)), Some(listing("old")));
}

#[test]
fn the_number_of_kept_listings_is_bounded() {
    let mut listings = Listings::default();
    let count = |listings: &Listings| (0..100).filter(|ino| listings.of(id(*ino, 1)).is_some()).count();
    for ino in 0..100 {
        listings.keep(id(ino, 1), &listing("entry"));
        assert!(listings.of(id(ino, 1)).is_some());
        assert!(count(&listings) <= LISTINGS_MAX);
    }
    listings.keep(id(99, 1), &listing("again"));
    assert_eq!(count(&listings), LISTINGS_MAX);
}
