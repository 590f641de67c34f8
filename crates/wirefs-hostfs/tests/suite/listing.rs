//! Directories, small and huge.

use crate::harness::{FIRST, World, at, get, open_as};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use wirefs_op::listing::entries;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::target::NOFD;
use wirefs_op::{DirEntry, Errno, Kind};

fn unpack(got: &Rget) -> Vec<DirEntry> {
    entries(got.data.0.clone()).unwrap()
}

#[test]
fn a_listing_holds_each_entry_with_its_own_attributes() {
    let world = World::new();
    std::fs::write(world.host("file"), "four").unwrap();
    std::fs::create_dir(world.host("sub")).unwrap();
    std::os::unix::fs::symlink("file", world.host("link")).unwrap();
    let mut listed = world.list(FIRST, at("")).unwrap();
    listed.sort_by(|one, other| one.name.cmp(&other.name));
    let seen: Vec<_> = listed.iter().map(|entry| (entry.name.as_slice(), entry.stat.kind)).collect();
    let expected =
        [(&b"file"[..], Kind::File), (&b"link"[..], Kind::Symlink), (&b"sub"[..], Kind::Directory)];
    assert_eq!(seen, expected);
    for entry in &listed {
        let name = std::str::from_utf8(&entry.name).unwrap();
        assert_eq!(entry.stat, world.stat(FIRST, at(name)).unwrap());
        assert_ne!(entry.next, 0);
    }
}

// S-58
#[test]
fn names_of_255_odd_bytes_are_listed_and_found() {
    let world = World::new();
    let mut name: Vec<u8> = (1..=255).filter(|byte| *byte != b'/').collect();
    name.push(b'\n');
    assert_eq!(name.len(), 255);
    std::fs::write(world.host("").join(OsStr::from_bytes(&name)), "odd").unwrap();
    let listed = world.list(FIRST, at("")).unwrap();
    assert_eq!(listed[0].name, name);
    let mut target = at("");
    target.path = target.path.join(&name).unwrap();
    assert_eq!(world.read(FIRST, target, 0, 9).unwrap(), b"odd");
}

#[test]
fn a_listing_continues_after_the_last_entry() {
    let world = World::new();
    for number in 0..100 {
        std::fs::write(world.host(&format!("entry{number}")), "").unwrap();
    }
    let mut names = HashSet::new();
    let (mut from, mut requests) = (0, 0);
    loop {
        let got = world.get(FIRST, get(at(""), GetMode::DATA, from, 1000)).unwrap();
        requests += 1;
        let last = got.last().unwrap();
        assert!(last.mode.has(GotMode::LAST));
        for entry in got.iter().flat_map(unpack) {
            from = entry.next;
            assert!(names.insert(entry.name), "listed twice");
        }
        if !last.mode.has(GotMode::MORE) {
            break;
        }
    }
    assert_eq!(names.len(), 100);
    assert!(requests > 5);
    let too_small = world.get(FIRST, get(at(""), GetMode::DATA, 0, 10));
    assert_eq!(too_small, Err(Errno::Invalid));
}

#[test]
fn whole_listings_are_complete_or_absent() {
    let world = World::new();
    for number in 0..50 {
        std::fs::write(world.host(&format!("entry{number}")), "").unwrap();
    }
    let mode = GetMode::DATA.and(GetMode::STAT).and(GetMode::WHOLE);
    let all = world.get(FIRST, get(at(""), mode, 0, 100_000)).unwrap();
    assert_eq!((all.len(), unpack(&all[0]).len()), (1, 50));
    assert_eq!(all[0].mode, GotMode::DATA.and(GotMode::LAST));
    let none = world.get(FIRST, get(at(""), mode, 0, 1000)).unwrap();
    assert_eq!((none.len(), none[0].data.0.len()), (1, 0));
    assert!(!none[0].mode.has(GotMode::DATA) && none[0].mode.has(GotMode::LAST));
    assert!(none[0].stat.is_some());
}

#[test]
fn the_number_of_replies_is_bounded_as_requested() {
    let world = World::new();
    for number in 0..3000 {
        std::fs::write(world.host(&format!("entry{number}")), "").unwrap();
    }
    let request = Tget { nmsgs: 2, ..get(at(""), GetMode::DATA, 0, u32::MAX) };
    let got = world.get(FIRST, request).unwrap();
    assert_eq!(got.len(), 2);
    assert_eq!(got[0].mode, GotMode::DATA.and(GotMode::MORE));
    assert_eq!(got[1].mode, GotMode::DATA.and(GotMode::MORE).and(GotMode::LAST));
}

#[test]
fn a_kept_directory_lists_from_the_start_again() {
    let world = World::new();
    std::fs::write(world.host("one"), "").unwrap();
    let mode = GetMode::DATA.and(GetMode::STAT).and(GetMode::MORE);
    let first = world.get(FIRST, get(at(""), mode, 0, 1 << 20)).unwrap().remove(0);
    assert_ne!(first.fd, NOFD);
    std::fs::write(world.host("two"), "").unwrap();
    let target = open_as("", first.fd, first.stat.unwrap().id);
    let run_test_in_child = world.get(FIRST, get(target, mode, 0, 1 << 20)).unwrap().remove(0);
    assert_eq!((unpack(&first).len(), unpack(&run_test_in_child).len()), (1, 2));
    assert_eq!(run_test_in_child.fd, first.fd);
}

/// Unchanged entries are each listed once while others are created and removed.
// S-30
#[test]
fn a_listing_of_100000_entries_is_complete_during_changes() {
    const STAYING: usize = 100_000;
    let world = World::new();
    let dir = std::fs::File::open(world.host("")).unwrap();
    // Links are fast to create; an inode takes some tens of thousands of them.
    for number in 0..STAYING {
        let (name, first) = (format!("stay{number}"), format!("stay{}", number / 20_000 * 20_000));
        if name == first {
            std::fs::write(world.host(&name), "").unwrap();
        } else {
            rustix::fs::linkat(&dir, first, &dir, name, rustix::fs::AtFlags::empty()).unwrap();
        }
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u32;
            while !over.load(Ordering::Relaxed) {
                let name = world.host(&format!("brief{}", number % 64));
                std::fs::write(&name, "").unwrap();
                std::fs::remove_file(&name).unwrap();
                number += 1;
            }
        });
        let listed = world.list(FIRST, at("")).unwrap();
        over.store(true, Ordering::Relaxed);
        let staying: Vec<_> = listed.iter().filter(|entry| entry.name.starts_with(b"stay")).collect();
        let unique: HashSet<_> = staying.iter().map(|entry| entry.name.as_slice()).collect();
        assert_eq!((staying.len(), unique.len()), (STAYING, STAYING));
    });
}
