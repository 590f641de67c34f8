//! Listings that the kernel reads without opening directories, and keeps: what programs see while others change the directory.

use crate::world::{Other, World, wait_for};
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// So many files that a listing takes the kernel several calls.
const STAY: usize = 600;
const ROUNDS: usize = 40;

fn stays(number: usize) -> String {
    format!("a name of some length that stays {number:04}")
}

fn fill(world: &World, directory: &str) {
    fs::create_dir(world.path(directory)).unwrap();
    for number in 0..STAY {
        File::create(world.path(directory).join(stays(number))).unwrap();
    }
}

fn names(world: &World, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(world.path(directory)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// What stays is there once.
fn assert_whole(names: &[String]) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    names.iter().for_each(|name| *seen.entry(name).or_default() += 1);
    for number in 0..STAY {
        assert_eq!(seen.get(stays(number).as_str()), Some(&1), "{number} of {}", names.len());
    }
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
}

/// Programs that list a directory over and over while something is done.
fn while_it_is_listed<R>(world: &World, directory: &str, what: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let list = || {
            while !is_over.load(Ordering::Relaxed) {
                assert_whole(&names(world, directory));
            }
        };
        let readers = [scope.spawn(list), scope.spawn(list)];
        // Also where what is done panics.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(what));
        is_over.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

// S-32 S-36 S-135
#[test]
fn a_change_by_another_mount_is_in_each_listing_that_begins_after_it() {
    let world = World::new();
    let _server = world.mounted_in_mode("lease");
    fill(&world, "export/d");
    let _other = Other::mount(&world, "lease");
    assert_whole(&names(&world, "mnt/d"));
    while_it_is_listed(&world, "mnt/d", || {
        for round in 0..ROUNDS {
            let (new, moved) = (format!("new {round}"), format!("moved {round}"));
            let there = world.path("other/d");
            File::create(there.join(&new)).unwrap();
            assert!(names(&world, "mnt/d").contains(&new), "round {round}");
            fs::rename(there.join(&new), there.join(&moved)).unwrap();
            let listed = names(&world, "mnt/d");
            assert!(listed.contains(&moved) && !listed.contains(&new), "round {round}");
            fs::remove_file(there.join(&moved)).unwrap();
            assert!(!names(&world, "mnt/d").contains(&moved), "round {round}");
        }
    });
    for mountpoint in ["mnt", "other"] {
        assert_eq!(world.status_of(mountpoint)["connections_lost"], 0);
    }
}

// S-32 S-135
#[test]
fn a_change_by_a_program_at_the_server_comes_into_the_listing() {
    let world = World::new();
    let _server = world.mounted_in_mode("lease");
    fill(&world, "export/d");
    assert_whole(&names(&world, "mnt/d"));
    while_it_is_listed(&world, "mnt/d", || {
        for round in 0..ROUNDS / 4 {
            let new = format!("new {round}");
            let there = world.path("export/d").join(&new);
            File::create(&there).unwrap();
            wait_for("the new name", || names(&world, "mnt/d").contains(&new));
            fs::remove_file(&there).unwrap();
            wait_for("it to be gone", || !names(&world, "mnt/d").contains(&new));
        }
    });
}

// S-32
#[test]
fn own_changes_are_in_each_listing_that_begins_after_them() {
    let world = World::new();
    let _server = world.mounted_in_mode("lease");
    fill(&world, "mnt/d");
    while_it_is_listed(&world, "mnt/d", || {
        for round in 0..ROUNDS {
            let new = world.path("mnt/d").join(format!("new {round}"));
            File::create(&new).unwrap();
            assert!(names(&world, "mnt/d").len() == STAY + 1, "round {round}");
            fs::remove_file(&new).unwrap();
            assert!(names(&world, "mnt/d").len() == STAY, "round {round}");
        }
    });
}

/// Reads a directory from where it is on, a few entries at a time: names, each with the position behind it.
fn read_on(directory: &File) -> Vec<(String, u64)> {
    let mut buffer = [MaybeUninit::uninit(); 512];
    let mut raw = RawDir::new(directory, &mut buffer);
    let mut read = Vec::new();
    while let Some(entry) = raw.next() {
        let entry = entry.unwrap();
        read.push((entry.file_name().to_string_lossy().into_owned(), entry.next_entry_cookie()));
    }
    read
}

// S-32
#[test]
fn a_reader_goes_back_to_where_it_was_though_names_came_and_went() {
    let world = World::new();
    let _server = world.mounted_in_mode("lease");
    fill(&world, "mnt/d");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let open = || File::from(rustix::fs::open(world.path("mnt/d"), flags, Mode::empty()).unwrap());
    let (first, second) = (open(), open());
    let whole = read_on(&first);
    assert_eq!(whole.len(), STAY + 2);
    assert_eq!(read_on(&second), whole);
    for change in 0..3 {
        for at in [0, 10, STAY / 2, STAY] {
            rustix::fs::seek(&first, SeekFrom::Start(whole[at].1)).unwrap();
            assert_eq!(read_on(&first), whole[at + 1..], "from {at} on, change {change}");
        }
        File::create(world.path("mnt/d").join(format!("new {change}"))).unwrap();
        rustix::fs::seek(&second, SeekFrom::Start(0)).unwrap();
        assert_eq!(read_on(&second).len(), STAY + 2 + change + 1, "from the beginning it is as it is");
    }
}

#[test]
fn a_directory_can_be_emptied_while_it_is_read_and_removed_while_it_is_open() {
    let world = World::new();
    let _server = world.mounted_in_mode("lease");
    let _other = Other::mount(&world, "lease");
    fill(&world, "mnt/d");
    assert_eq!(names(&world, "mnt/d").len(), STAY);
    let mut removed = 0;
    for entry in fs::read_dir(world.path("mnt/d")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
        removed += 1;
    }
    assert_eq!((removed, names(&world, "mnt/d").len()), (STAY, 0));
    let open = fs::read_dir(world.path("mnt/d")).unwrap();
    fs::remove_dir(world.path("mnt/d")).unwrap();
    assert_eq!(open.count(), 0, "a directory that was removed has nothing in it");
}
