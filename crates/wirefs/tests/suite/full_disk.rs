//! A mount whose journal is on a full disk.

use crate::home::{Finished, TestHome, wait_for};
use crate::journal::{clear, exclusive, journals, umount};
use rustix::process::{Signal, kill_process};
use std::fs::{self, File};
use std::path::PathBuf;

const MIB: usize = 1 << 20;

/// A small disk for the journals of a test home.
struct Disk {
    dir: PathBuf,
}

impl Disk {
    fn of(home: &TestHome, mib: u32) -> Disk {
        let dir = home.path("home/.local/state/wirefs/journal");
        fs::create_dir_all(&dir).unwrap();
        let options = format!("size={mib}m,mode=0700");
        let mut mount = home.command("mount");
        Finished::of(mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&dir)).succeeds();
        Disk { dir }
    }

    fn grow(&self, home: &TestHome, mib: u32) {
        let options = format!("remount,size={mib}m");
        Finished::of(home.command("mount").args(["-o", &options]).arg(&self.dir)).succeeds();
    }

    /// Returns the files of the journals.
    fn files(&self) -> Vec<PathBuf> {
        let names = |dir: &PathBuf| -> Vec<PathBuf> {
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        let sessions = names(&self.dir).iter().flat_map(names).collect::<Vec<_>>();
        sessions.iter().flat_map(names).collect()
    }

    fn segments(&self) -> Vec<PathBuf> {
        self.files().into_iter().filter(|file| file.extension().is_some()).collect()
    }

    /// Keeps the disk blocks of the journals allocated, even if their files are removed.
    fn hold(&self) -> Vec<File> {
        self.files().iter().map(|file| File::open(file).unwrap()).collect()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A mount may still use it.
        let _gone = std::process::Command::new("umount").arg("-l").arg(&self.dir).status();
    }
}

fn failed(home: &TestHome) -> Option<String> {
    home.status()["journal"]["failed"].as_str().map(str::to_owned)
}

fn fill(number: usize) -> Vec<u8> {
    vec![u8::try_from(number % 251).unwrap(); MIB]
}

/// Writes more than the disk can hold. The disk blocks stay allocated while the result lives.
fn overfill(home: &TestHome, disk: &Disk, files: usize) -> Vec<File> {
    let held = disk.hold();
    assert!(!held.is_empty());
    write(home, files);
    held
}

fn write(home: &TestHome, files: usize) {
    for number in 0..files {
        fs::write(home.path(&format!("mnt/{number}")), fill(number)).unwrap();
    }
}

fn assert_all_present(home: &TestHome, files: usize) {
    for number in 0..files {
        let there = fs::read(home.path(&format!("export/{number}"))).unwrap();
        assert!(there == fill(number), "file {number}, of {} bytes", there.len());
    }
}

// S-97 S-98
#[test]
fn full_journal_fails_no_program_and_restarts_when_space_is_free() {
    const FILES: usize = 24;
    let home = TestHome::new();
    let disk = Disk::of(&home, 20);
    let server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    let held = overfill(&home, &disk, FILES);
    let why = failed(&home).expect("no room");
    assert!(why.contains(disk.dir.to_str().unwrap()) && why.contains("make 16 MiB free there"), "{why}");
    let output = home.wirefs(&["status", "mnt"]).succeeds();
    assert!(output.contains(&why), "{output}");
    // The server has each file that was closed since, and all earlier changes.
    fs::rename(home.path("mnt/0"), home.path("mnt/moved")).unwrap();
    fs::write(home.path("mnt/0"), fill(0)).unwrap();
    assert_all_present(&home, FILES);
    assert!(fs::read(home.path("export/moved")).unwrap() == fill(0));
    drop(held);
    wait_for("a journal that is written", || failed(&home).is_none());
    // The journal works again: a change that only it has is not lost.
    let process = home.process();
    wait_for("a mount that does not wait", || home.status()["journal"]["unanswered_changes"] == 0);
    server.kill(Signal::STOP);
    fs::write(home.path("mnt/later"), "only in the journal").unwrap();
    kill_process(process, Signal::KILL).unwrap();
    server.kill(Signal::CONT);
    clear(&home);
    home.wirefs(&["recover"]).succeeds();
    assert_eq!(home.read("export/later"), "only in the journal");
    assert_all_present(&home, FILES);
    wait_for("the end", || journals(&home).is_empty());
}

// S-97
#[test]
fn restarted_journal_continues_for_many_segments() {
    const FILES: usize = 18;
    let home = TestHome::new();
    let disk = Disk::of(&home, 20);
    let _server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    let held = overfill(&home, &disk, FILES);
    assert!(failed(&home).is_some());
    drop(held);
    wait_for("a journal that is written", || failed(&home).is_none());
    disk.grow(&home, 256);
    let before = disk.segments();
    assert!(!before.is_empty());
    wait_for("segments that go", || {
        write(&home, FILES);
        home.wirefs(&["sync", "mnt"]).succeeds();
        failed(&home).is_some() || before.iter().all(|old| !disk.segments().contains(old))
    });
    assert_eq!(failed(&home), None);
    umount(&home);
    assert_all_present(&home, FILES);
    wait_for("the end", || journals(&home).is_empty());
}

// S-97
#[test]
fn mount_killed_with_a_full_journal_loses_and_repeats_nothing() {
    const FILES: usize = 24;
    let home = TestHome::new();
    let disk = Disk::of(&home, 20);
    let _server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    let _held = overfill(&home, &disk, FILES);
    assert!(failed(&home).is_some());
    // The names differ from those that the journal has recorded as done.
    fs::rename(home.path("mnt/1"), home.path("mnt/2")).unwrap();
    fs::write(home.path("mnt/1"), "another").unwrap();
    kill_process(home.process(), Signal::KILL).unwrap();
    clear(&home);
    home.wirefs(&["recover"]).succeeds();
    assert_eq!(home.read("export/1"), "another");
    assert!(fs::read(home.path("export/2")).unwrap() == fill(1));
    assert!(fs::read(home.path("export/23")).unwrap() == fill(23));
    wait_for("the end", || journals(&home).is_empty());
}

// S-97
#[test]
fn unmount_with_a_full_journal_leaves_no_journal() {
    const FILES: usize = 18;
    let home = TestHome::new();
    let disk = Disk::of(&home, 20);
    let _server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    let _held = overfill(&home, &disk, FILES);
    umount(&home);
    assert_all_present(&home, FILES);
    wait_for("the end", || journals(&home).is_empty());
}

// S-99
#[test]
fn mount_on_a_full_disk_reports_it_and_works_without_a_journal() {
    let home = TestHome::new();
    let disk = Disk::of(&home, 8);
    let _server = home.serve(&["--listen", &home.url()]);
    let mounted = home.wirefs(&["mount", &home.url(), "mnt"]);
    for word in ["no journal: ", disk.dir.to_str().unwrap(), "make 16 MiB free there"] {
        assert!(mounted.stderr.contains(word), "`{word}` is not in: {}", mounted.stderr);
    }
    mounted.succeeds();
    fs::write(home.path("mnt/file"), "text").unwrap();
    assert_eq!(home.read("export/file"), "text");
    assert!(home.status()["journal"].is_null());
    umount(&home);
    wait_for("the end", || journals(&home).is_empty());
    assert!(disk.hold().is_empty(), "something is left");
    disk.grow(&home, 64);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    assert!(!home.status()["journal"].is_null());
    umount(&home);
}
