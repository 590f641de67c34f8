//! Large directories.

use super::fixture::{SESSION, TreeFixture, at};
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, GotMode, Tget};
use wirefs_op::{DirEntry, Reply, Request};

use super::fixture::CollectedReplies;

/// Returns one reply of a listing, and whether more follow.
fn page(fixture: &TreeFixture, dir: &str, offset: u64, count: u32) -> (Vec<DirEntry>, bool) {
    let get = Tget { target: at(dir), mode: GetMode::DATA, nmsgs: 1, offset, count };
    let mut collected = CollectedReplies::default();
    fixture.tree.serve(SESSION, &Request::Get(get), &mut collected);
    match collected.0.as_slice() {
        [Reply::Get(got)] => (entries(got.data.0.clone()).unwrap(), got.mode.has(GotMode::MORE)),
        other => panic!("{other:?}"),
    }
}

// S-30
#[test]
fn large_directory_is_listed_once_despite_concurrent_changes() {
    let fixture = TreeFixture::new();
    fixture.mkdir("d").unwrap();
    for number in 0..3000 {
        fixture.create(&format!("d/f{number}"), Bytes::new()).unwrap();
    }
    let mut seen: Vec<Vec<u8>> = Vec::new();
    let mut offset = 0;
    for round in 0.. {
        let (listed, goes_on) = page(&fixture, "d", offset, 8000);
        offset = listed.last().map_or(offset, |entry| entry.next);
        seen.extend(listed.into_iter().map(|entry| entry.name));
        if !goes_on {
            break;
        }
        fixture.remove(&format!("d/f{round}")).unwrap();
        fixture.create(&format!("d/new{round}"), Bytes::new()).unwrap();
    }
    let once: BTreeSet<&Vec<u8>> = seen.iter().collect();
    assert_eq!(once.len(), seen.len(), "a name was listed twice");
    let stayed = (0..3000).map(|number| format!("f{number}").into_bytes());
    let missing = stayed
        .filter(|name| !once.contains(name))
        .filter(|name| fixture.stat(&format!("d/{}", std::str::from_utf8(name).unwrap())).is_ok());
    assert_eq!(missing.count(), 0, "a name that was there all the time was not listed");
    fixture.audit();
}

#[test]
fn a_large_directory_is_emptied() {
    let fixture = TreeFixture::new();
    fixture.mkdir("d").unwrap();
    for number in 0..2000 {
        fixture.create(&format!("d/{number}"), Bytes::from_static(b"some bytes")).unwrap();
    }
    assert_eq!(fixture.stat("d").unwrap().size, 2000);
    assert!(fixture.rmdir("d").is_err());
    for number in 0..2000 {
        fixture.remove(&format!("d/{}", number * 7 % 2000)).unwrap();
    }
    fixture.rmdir("d").unwrap();
    fixture.collect();
    fixture.audit();
    assert_eq!(fixture.store.all().len(), 2);
}

#[test]
fn listing_has_the_attributes_of_each_lookup() {
    let fixture = TreeFixture::new();
    for number in 0..50 {
        fixture.create(&format!("f{number}"), Bytes::from(vec![1; number * 40])).unwrap();
        fixture.mkdir(&format!("d{number}")).unwrap();
    }
    for entry in fixture.list("").unwrap() {
        assert_eq!(fixture.stat(std::str::from_utf8(&entry.name).unwrap()), Ok(entry.stat));
    }
}

#[test]
fn checkpoint_directory_is_listed_after_any_number_of_names() {
    let fixture = TreeFixture::new();
    fixture.tree.create_checkpoint(b"one").unwrap();
    let mut made = 0;
    for count in [0, 1023, 1024, 3000] {
        for number in made..count {
            fixture.create(&format!("f{number}"), Bytes::new()).unwrap();
        }
        made = count;
        let names = fixture.names("");
        assert_eq!(names.len(), count + 1);
        assert_eq!(names.iter().filter(|name| *name == ".checkpoints").count(), 1, "{count} names");
    }
}
