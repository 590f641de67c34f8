//! Listings that the kernel reads with stateless readdir and caches: consistency while other programs change the
//! directory.

use crate::home::{SecondMount, TestHome, wait_for};
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Enough files for several calls of the kernel per listing.
const PERMANENT: usize = 600;
const ROUNDS: usize = 40;

fn permanent_name(number: usize) -> String {
    format!("a name of some length that stays {number:04}")
}

fn fill(home: &TestHome, directory: &str) {
    fs::create_dir(home.path(directory)).unwrap();
    for number in 0..PERMANENT {
        File::create(home.path(directory).join(permanent_name(number))).unwrap();
    }
}

fn names(home: &TestHome, directory: &str) -> Vec<String> {
    let entries = fs::read_dir(home.path(directory)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Each permanent file is listed exactly once.
fn assert_whole(names: &[String]) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    names.iter().for_each(|name| *seen.entry(name).or_default() += 1);
    for number in 0..PERMANENT {
        assert_eq!(seen.get(permanent_name(number).as_str()), Some(&1), "{number} of {}", names.len());
    }
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
}

/// Lists a directory repeatedly in programs while `what` runs.
fn while_listed<R>(home: &TestHome, directory: &str, what: impl FnOnce() -> R) -> R {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let list = || {
            while !is_done.load(Ordering::Relaxed) {
                assert_whole(&names(home, directory));
            }
        };
        let readers = [scope.spawn(list), scope.spawn(list)];
        // Also if `what` panics.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(what));
        is_done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

// S-30 S-4 S-32
#[test]
fn change_by_another_mount_is_in_later_listings() {
    let home = TestHome::new();
    let _server = home.mounted_in_mode("lease");
    fill(&home, "export/d");
    let _second = SecondMount::mount(&home, "lease");
    assert_whole(&names(&home, "mnt/d"));
    while_listed(&home, "mnt/d", || {
        for round in 0..ROUNDS {
            let (new, moved) = (format!("new {round}"), format!("moved {round}"));
            let there = home.path("other/d");
            File::create(there.join(&new)).unwrap();
            assert!(names(&home, "mnt/d").contains(&new), "round {round}");
            fs::rename(there.join(&new), there.join(&moved)).unwrap();
            let listed = names(&home, "mnt/d");
            assert!(listed.contains(&moved) && !listed.contains(&new), "round {round}");
            fs::remove_file(there.join(&moved)).unwrap();
            assert!(!names(&home, "mnt/d").contains(&moved), "round {round}");
        }
    });
    for mountpoint in ["mnt", "other"] {
        assert_eq!(home.status_of(mountpoint)["connections_lost"], 0);
    }
}

// S-30 S-32
#[test]
fn change_by_a_server_program_appears_in_listings() {
    let home = TestHome::new();
    let _server = home.mounted_in_mode("lease");
    fill(&home, "export/d");
    assert_whole(&names(&home, "mnt/d"));
    while_listed(&home, "mnt/d", || {
        for round in 0..ROUNDS / 4 {
            let new = format!("new {round}");
            let there = home.path("export/d").join(&new);
            File::create(&there).unwrap();
            wait_for("the new name", || names(&home, "mnt/d").contains(&new));
            fs::remove_file(&there).unwrap();
            wait_for("it to be gone", || !names(&home, "mnt/d").contains(&new));
        }
    });
}

// S-30
#[test]
fn own_changes_are_in_later_listings() {
    let home = TestHome::new();
    let _server = home.mounted_in_mode("lease");
    fill(&home, "mnt/d");
    while_listed(&home, "mnt/d", || {
        for round in 0..ROUNDS {
            let new = home.path("mnt/d").join(format!("new {round}"));
            File::create(&new).unwrap();
            assert!(names(&home, "mnt/d").len() == PERMANENT + 1, "round {round}");
            fs::remove_file(&new).unwrap();
            assert!(names(&home, "mnt/d").len() == PERMANENT, "round {round}");
        }
    });
}

/// Reads a directory from the current position, a few entries at a time: names, each with the position after it.
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

// S-30
#[test]
fn seekdir_works_despite_added_and_removed_names() {
    let home = TestHome::new();
    let _server = home.mounted_in_mode("lease");
    fill(&home, "mnt/d");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let open = || File::from(rustix::fs::open(home.path("mnt/d"), flags, Mode::empty()).unwrap());
    let (first, second) = (open(), open());
    let whole = read_on(&first);
    assert_eq!(whole.len(), PERMANENT + 2);
    assert_eq!(read_on(&second), whole);
    for change in 0..3 {
        for at in [0, 10, PERMANENT / 2, PERMANENT] {
            rustix::fs::seek(&first, SeekFrom::Start(whole[at].1)).unwrap();
            assert_eq!(read_on(&first), whole[at + 1..], "from {at} on, change {change}");
        }
        File::create(home.path("mnt/d").join(format!("new {change}"))).unwrap();
        rustix::fs::seek(&second, SeekFrom::Start(0)).unwrap();
        assert_eq!(read_on(&second).len(), PERMANENT + 2 + change + 1, "from the beginning it is as it is");
    }
}

#[test]
fn directory_can_be_emptied_while_read_and_removed_while_open() {
    let home = TestHome::new();
    let _server = home.mounted_in_mode("lease");
    let _second = SecondMount::mount(&home, "lease");
    fill(&home, "mnt/d");
    assert_eq!(names(&home, "mnt/d").len(), PERMANENT);
    let mut removed = 0;
    for entry in fs::read_dir(home.path("mnt/d")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
        removed += 1;
    }
    assert_eq!((removed, names(&home, "mnt/d").len()), (PERMANENT, 0));
    let open = fs::read_dir(home.path("mnt/d")).unwrap();
    fs::remove_dir(home.path("mnt/d")).unwrap();
    assert_eq!(open.count(), 0, "a directory that was removed has nothing in it");
}
