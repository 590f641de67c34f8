//! Two clients of one export: visibility of each other's changes.

mod data;
mod locks;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use crate::site::{Site, wait_for};

/// An export and two mounts of it.
struct TwoMounts {
    site: Site,
    a: PathBuf,
    b: PathBuf,
}

impl TwoMounts {
    fn new(name: &str, mode: &str) -> TwoMounts {
        let site = Site::unix(name);
        let [a, b] = ["a", "b"].map(|mount| site.mount(mount, &["--mode", mode]));
        TwoMounts { site, a, b }
    }
}

fn no_append_is_lost(mode: &str) {
    const LINES: usize = 150;
    let mounts = TwoMounts::new("append", mode);
    let append = |at: &Path, writer: &str| {
        let mut log = OpenOptions::new().append(true).create(true).open(at.join("log")).unwrap();
        for line in 0..LINES {
            log.write_all(format!("{writer} {line}\n").as_bytes()).unwrap();
        }
    };
    thread::scope(|scope| {
        for (at, writer) in [(&mounts.a, "a1"), (&mounts.b, "b1"), (&mounts.a, "a2"), (&mounts.b, "b2")] {
            scope.spawn(move || append(at, writer));
        }
    });
    let text = fs::read_to_string(mounts.site.export().join("log")).unwrap();
    for writer in ["a1", "b1", "a2", "b2"] {
        let own: Vec<&str> = text.lines().filter(|line| line.starts_with(writer)).collect();
        let expected: Vec<String> = (0..LINES).map(|line| format!("{writer} {line}")).collect();
        assert_eq!(own, expected, "in order and none missing");
    }
    assert_eq!(text.lines().count(), 4 * LINES);
}

#[test]
fn no_append_is_lost_with_a_window() {
    no_append_is_lost("window");
}

#[test]
fn no_append_is_lost_in_strict_mounts() {
    no_append_is_lost("strict");
}

/// Runs the same attempt on both mounts at once, many times; returns the set of success counts per round.
fn races(mounts: &TwoMounts, attempt: impl Fn(&Path) -> bool + Sync) -> BTreeSet<usize> {
    let start = Barrier::new(2);
    let run = |at: &PathBuf, round: usize| {
        start.wait();
        usize::from(attempt(&at.join(format!("race{round}"))))
    };
    thread::scope(|scope| {
        let [a, b] = [&mounts.a, &mounts.b].map(|at| {
            let run = &run;
            scope.spawn(move || (0..80).map(|round| run(at, round)).collect::<Vec<usize>>())
        });
        let (a, b) = (a.join().unwrap(), b.join().unwrap());
        a.iter().zip(&b).map(|(a, b)| a + b).collect()
    })
}

fn is_first(made: std::io::Result<()>) -> bool {
    match made {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn one_of_two_exclusive_creations_succeeds() {
    let mounts = TwoMounts::new("exclusive", "window");
    let winners = races(&mounts, |path| is_first(File::create_new(path).map(drop)));
    assert_eq!(winners, BTreeSet::from([1]));
}

#[test]
fn one_of_two_creations_of_a_directory_or_symlink_succeeds() {
    let mounts = TwoMounts::new("mkdir", "window");
    let winners = races(&mounts, |path| is_first(fs::create_dir(path)));
    assert_eq!(winners, BTreeSet::from([1]));
    let winners =
        races(&mounts, |path| is_first(std::os::unix::fs::symlink("target", path.with_extension("link"))));
    assert_eq!(winners, BTreeSet::from([1]));
}

#[test]
fn open_file_survives_removal_by_the_other_client() {
    let mounts = TwoMounts::new("unlinked", "window");
    fs::write(mounts.a.join("f"), vec![7; 300_000]).unwrap();
    let mut open = OpenOptions::new().read(true).write(true).open(mounts.a.join("f")).unwrap();
    fs::remove_file(mounts.b.join("f")).unwrap();
    assert!(!mounts.site.export().join("f").exists());
    open.write_all_at(b"still here", 299_000).unwrap();
    open.sync_all().unwrap();
    let mut contents = Vec::new();
    open.read_to_end(&mut contents).unwrap();
    assert_eq!(contents.len(), 300_000);
    assert_eq!(&contents[299_000..299_010], b"still here");
    fs::write(mounts.b.join("f"), "another").unwrap();
    let mut first = [0; 4];
    open.read_exact_at(&mut first, 0).unwrap();
    assert_eq!(first, [7; 4]);
    wait_for("the new file to be seen", || fs::read(mounts.a.join("f")).is_ok_and(|text| text == b"another"));
}

#[test]
fn change_is_visible_to_the_other_client_after_the_window() {
    let mounts = TwoMounts::new("window", "window=200ms");
    fs::write(mounts.a.join("f"), "one").unwrap();
    fs::create_dir(mounts.a.join("d")).unwrap();
    // The other client has cached all of it now.
    assert_eq!(fs::read_to_string(mounts.b.join("f")).unwrap(), "one");
    assert_eq!(fs::read_dir(mounts.b.join("d")).unwrap().count(), 0);
    assert!(!mounts.b.join("new").exists());

    fs::write(mounts.a.join("f"), "two").unwrap();
    wait_for("the contents", || fs::read_to_string(mounts.b.join("f")).unwrap() == "two");
    fs::write(mounts.a.join("d/entry"), "").unwrap();
    wait_for("the entry", || fs::read_dir(mounts.b.join("d")).unwrap().count() == 1);
    fs::write(mounts.a.join("new"), "").unwrap();
    wait_for("the name that was not there", || mounts.b.join("new").exists());
    fs::rename(mounts.a.join("new"), mounts.a.join("renamed")).unwrap();
    wait_for("the rename", || !mounts.b.join("new").exists() && mounts.b.join("renamed").exists());
    fs::set_permissions(mounts.a.join("f"), std::os::unix::fs::PermissionsExt::from_mode(0o400)).unwrap();
    wait_for("the mode", || fs::metadata(mounts.b.join("f")).unwrap().mode() & 0o777 == 0o400);
    // An open file shows new contents too, without a new open.
    let held = File::open(mounts.b.join("f")).unwrap();
    OpenOptions::new().write(true).open(mounts.a.join("f")).unwrap().write_all_at(b"six", 0).unwrap();
    wait_for("the contents of an open file", || {
        let mut contents = [0; 3];
        held.read_exact_at(&mut contents, 0).unwrap();
        &contents == b"six"
    });
}

#[test]
fn names_of_255_arbitrary_bytes_work() {
    let mounts = TwoMounts::new("names", "window");
    let odd: Vec<u8> = (1..=255).filter(|&byte| byte != b'/').chain([b' ']).collect();
    assert_eq!(odd.len(), 255);
    let names = [&odd[..], &[0xff; 255], b"\n", b"...", b"-rf *", "e\u{301}".as_bytes(), "\u{e9}".as_bytes()];
    for name in names {
        fs::write(mounts.a.join(OsStr::from_bytes(name)), name).unwrap();
    }
    let listed: BTreeSet<Vec<u8>> = fs::read_dir(&mounts.b)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().as_bytes().to_vec())
        .collect();
    assert_eq!(listed, names.iter().map(|name| name.to_vec()).collect());
    for name in names {
        assert_eq!(fs::read(mounts.b.join(OsStr::from_bytes(name))).unwrap(), name);
    }
    let longer = mounts.a.join(OsStr::from_bytes(&[b'x'; 256]));
    assert_eq!(fs::write(longer, "").unwrap_err().kind(), ErrorKind::InvalidFilename);
}

#[test]
fn file_of_more_than_4_gib_is_complete() {
    const FAR: u64 = (5 << 30) + 123;
    let mounts = TwoMounts::new("large", "window");
    let file = File::create(mounts.a.join("large")).unwrap();
    file.write_all_at(b"near", 10).unwrap();
    file.write_all_at(b"far away", FAR).unwrap();
    drop(file);
    let other = File::open(mounts.b.join("large")).unwrap();
    assert_eq!(other.metadata().unwrap().len(), FAR + 8);
    assert!(other.metadata().unwrap().blocks() < 1_000);
    let mut found = [0; 8];
    other.read_exact_at(&mut found, FAR).unwrap();
    assert_eq!(&found, b"far away");
    let mut before = [1; 8];
    other.read_exact_at(&mut before, FAR - 8).unwrap();
    assert_eq!(before, [0; 8]);
    assert_eq!(rustix::fs::seek(&other, rustix::fs::SeekFrom::Data(1 << 20)).unwrap(), FAR & !4_095);
}

#[test]
fn listing_of_100_000_entries_is_complete_while_the_directory_changes() {
    const ENTRIES: usize = 100_000;
    let mounts = TwoMounts::new("huge", "window");
    let own = mounts.site.export().join("d");
    fs::create_dir(&own).unwrap();
    for number in 0..ENTRIES {
        File::create(own.join(format!("entry-{number:06}"))).unwrap();
    }
    let mut listing = fs::read_dir(mounts.a.join("d")).unwrap();
    let mut names: Vec<_> = listing.by_ref().take(1_000).map(|entry| entry.unwrap().file_name()).collect();
    // The other client changes the directory in the middle of the listing; unchanged entries still appear exactly once.
    fs::write(mounts.b.join("d/zz-new"), "").unwrap();
    fs::remove_file(mounts.b.join("d").join(&names[0])).unwrap();
    names.extend(listing.map(|entry| entry.unwrap().file_name()).filter(|name| name != "zz-new"));
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!((names.len(), distinct.len()), (ENTRIES, ENTRIES));
    assert_eq!(fs::read_dir(mounts.b.join("d")).unwrap().count(), ENTRIES);
    assert!(mounts.b.join("d/entry-077777").exists());
}
