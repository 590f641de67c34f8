//! Directories of many entries.

use super::world::{SESSION, World, at};
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, GotMode, Tget};
use wirefs_op::{DirEntry, Reply, Request};

use super::world::Collected;

/// One message of a listing, and whether more follow.
fn page(world: &World, dir: &str, offset: u64, count: u32) -> (Vec<DirEntry>, bool) {
    let get = Tget { target: at(dir), mode: GetMode::DATA, nmsgs: 1, offset, count };
    let mut collected = Collected::default();
    world.tree.serve(SESSION, &Request::Get(get), &mut collected);
    match collected.0.as_slice() {
        [Reply::Get(got)] => (entries(got.data.0.clone()).unwrap(), got.mode.has(GotMode::MORE)),
        other => panic!("{other:?}"),
    }
}

// S-32
#[test]
fn a_large_directory_is_listed_once_whatever_is_made_and_removed_meanwhile() {
    let world = World::new();
    world.mkdir("d").unwrap();
    for number in 0..3000 {
        world.create(&format!("d/f{number}"), Bytes::new()).unwrap();
    }
    let mut seen: Vec<Vec<u8>> = Vec::new();
    let mut offset = 0;
    for round in 0.. {
        let (listed, goes_on) = page(&world, "d", offset, 8000);
        offset = listed.last().map_or(offset, |entry| entry.next);
        seen.extend(listed.into_iter().map(|entry| entry.name));
        if !goes_on {
            break;
        }
        world.remove(&format!("d/f{round}")).unwrap();
        world.create(&format!("d/new{round}"), Bytes::new()).unwrap();
    }
    let once: BTreeSet<&Vec<u8>> = seen.iter().collect();
    assert_eq!(once.len(), seen.len(), "a name was listed twice");
    let stayed = (0..3000).map(|number| format!("f{number}").into_bytes());
    let missing = stayed
        .filter(|name| !once.contains(name))
        .filter(|name| world.stat(&format!("d/{}", std::str::from_utf8(name).unwrap())).is_ok());
    assert_eq!(missing.count(), 0, "a name that was there all the time was not listed");
    world.audit();
}

#[test]
fn a_large_directory_is_emptied() {
    let world = World::new();
    world.mkdir("d").unwrap();
    for number in 0..2000 {
        world.create(&format!("d/{number}"), Bytes::from_static(b"some bytes")).unwrap();
    }
    assert_eq!(world.stat("d").unwrap().size, 2000);
    assert!(world.rmdir("d").is_err());
    for number in 0..2000 {
        world.remove(&format!("d/{}", number * 7 % 2000)).unwrap();
    }
    world.rmdir("d").unwrap();
    world.collect();
    world.audit();
    assert_eq!(world.store.all().len(), 2);
}

#[test]
fn a_listing_tells_what_a_look_at_each_entry_tells() {
    let world = World::new();
    for number in 0..50 {
        world.create(&format!("f{number}"), Bytes::from(vec![1; number * 40])).unwrap();
        world.mkdir(&format!("d{number}")).unwrap();
    }
    for entry in world.list("").unwrap() {
        assert_eq!(world.stat(std::str::from_utf8(&entry.name).unwrap()), Ok(entry.stat));
    }
}

#[test]
fn the_checkpoints_are_listed_behind_however_many_names() {
    let world = World::new();
    world.tree.create_checkpoint(b"one").unwrap();
    let mut made = 0;
    for count in [0, 1023, 1024, 3000] {
        for number in made..count {
            world.create(&format!("f{number}"), Bytes::new()).unwrap();
        }
        made = count;
        let names = world.names("");
        assert_eq!(names.len(), count + 1);
        assert_eq!(names.iter().filter(|name| *name == ".checkpoints").count(), 1, "{count} names");
    }
}
