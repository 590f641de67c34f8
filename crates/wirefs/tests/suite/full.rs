//! A mount whose local disk is full: where its journal is.

use crate::journal::{alone, clear, journals, umount};
use crate::world::{Ran, World, wait_for};
use rustix::process::{Signal, kill_process};
use std::fs::{self, File};
use std::path::PathBuf;

const MIB: usize = 1 << 20;

/// A small disk for the journals of a world.
struct Disk {
    dir: PathBuf,
}

impl Disk {
    fn of(world: &World, mib: u32) -> Disk {
        let dir = world.path("home/.local/state/wirefs/journal");
        fs::create_dir_all(&dir).unwrap();
        let options = format!("size={mib}m,mode=0700");
        let mut mount = world.command("mount");
        Ran::of(mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&dir)).succeeds();
        Disk { dir }
    }

    fn grow(&self, world: &World, mib: u32) {
        let options = format!("remount,size={mib}m");
        Ran::of(world.command("mount").args(["-o", &options]).arg(&self.dir)).succeeds();
    }

    /// The files that are in the journals.
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

    /// Keeps the room of what is in the journals, whoever removes it.
    fn hold(&self) -> Vec<File> {
        self.files().iter().map(|file| File::open(file).unwrap()).collect()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A mount may use it still.
        let _gone = std::process::Command::new("umount").arg("-l").arg(&self.dir).status();
    }
}

fn failed(world: &World) -> Option<String> {
    world.status()["journal"]["failed"].as_str().map(str::to_owned)
}

fn fill(number: usize) -> Vec<u8> {
    vec![u8::try_from(number % 251).unwrap(); MIB]
}

/// Writes more than the disk has room for. Keeps the room taken for as long as what is handed back lives.
fn overfill(world: &World, disk: &Disk, files: usize) -> Vec<File> {
    let held = disk.hold();
    assert!(!held.is_empty());
    write(world, files);
    held
}

fn write(world: &World, files: usize) {
    for number in 0..files {
        fs::write(world.path(&format!("mnt/{number}")), fill(number)).unwrap();
    }
}

fn are_all_there(world: &World, files: usize) {
    for number in 0..files {
        let there = fs::read(world.path(&format!("export/{number}"))).unwrap();
        assert!(there == fill(number), "file {number}, of {} bytes", there.len());
    }
}

// S-118 S-119
#[test]
fn a_journal_without_room_fails_no_program_and_begins_anew_when_there_is_some() {
    const FILES: usize = 24;
    let world = World::new();
    let disk = Disk::of(&world, 20);
    let server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    let held = overfill(&world, &disk, FILES);
    let why = failed(&world).expect("no room");
    assert!(why.contains(disk.dir.to_str().unwrap()) && why.contains("make 16 MiB free there"), "{why}");
    let told = world.wirefs(&["status", "mnt"]).succeeds();
    assert!(told.contains(&why), "{told}");
    // The server has each file that was closed since, and so all before it.
    fs::rename(world.path("mnt/0"), world.path("mnt/moved")).unwrap();
    fs::write(world.path("mnt/0"), fill(0)).unwrap();
    are_all_there(&world, FILES);
    assert!(fs::read(world.path("export/moved")).unwrap() == fill(0));
    drop(held);
    wait_for("a journal that is written", || failed(&world).is_none());
    // It counts: what only it has is not lost.
    let process = world.process();
    wait_for("a mount that does not wait", || world.status()["journal"]["unanswered_changes"] == 0);
    server.kill(Signal::STOP);
    fs::write(world.path("mnt/later"), "only in the journal").unwrap();
    kill_process(process, Signal::KILL).unwrap();
    server.kill(Signal::CONT);
    clear(&world);
    world.wirefs(&["recover"]).succeeds();
    assert_eq!(world.read("export/later"), "only in the journal");
    are_all_there(&world, FILES);
    wait_for("the end", || journals(&world).is_empty());
}

// S-118
#[test]
fn a_journal_that_had_no_room_and_has_some_again_goes_on_for_many_segments() {
    const FILES: usize = 18;
    let world = World::new();
    let disk = Disk::of(&world, 20);
    let _server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    let held = overfill(&world, &disk, FILES);
    assert!(failed(&world).is_some());
    drop(held);
    wait_for("a journal that is written", || failed(&world).is_none());
    disk.grow(&world, 256);
    let before = disk.segments();
    assert!(!before.is_empty());
    wait_for("segments that go", || {
        write(&world, FILES);
        world.wirefs(&["sync", "mnt"]).succeeds();
        failed(&world).is_some() || before.iter().all(|old| !disk.segments().contains(old))
    });
    assert_eq!(failed(&world), None);
    umount(&world);
    are_all_there(&world, FILES);
    wait_for("the end", || journals(&world).is_empty());
}

// S-118
#[test]
fn a_mount_that_is_killed_while_its_journal_has_no_room_loses_and_repeats_nothing() {
    const FILES: usize = 24;
    let world = World::new();
    let disk = Disk::of(&world, 20);
    let _server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    let _held = overfill(&world, &disk, FILES);
    assert!(failed(&world).is_some());
    // What the journal knows to be done is not what is there any more.
    fs::rename(world.path("mnt/1"), world.path("mnt/2")).unwrap();
    fs::write(world.path("mnt/1"), "another").unwrap();
    kill_process(world.process(), Signal::KILL).unwrap();
    clear(&world);
    world.wirefs(&["recover"]).succeeds();
    assert_eq!(world.read("export/1"), "another");
    assert!(fs::read(world.path("export/2")).unwrap() == fill(1));
    assert!(fs::read(world.path("export/23")).unwrap() == fill(23));
    wait_for("the end", || journals(&world).is_empty());
}

// S-118
#[test]
fn a_mount_that_ends_while_its_journal_has_no_room_leaves_nothing_to_do() {
    const FILES: usize = 18;
    let world = World::new();
    let disk = Disk::of(&world, 20);
    let _server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    let _held = overfill(&world, &disk, FILES);
    umount(&world);
    are_all_there(&world, FILES);
    wait_for("the end", || journals(&world).is_empty());
}

// S-122
#[test]
fn a_mount_on_a_full_disk_says_where_room_is_missing_and_works_without_a_journal() {
    let world = World::new();
    let disk = Disk::of(&world, 8);
    let _server = world.serve(&["--listen", &world.url()]);
    let mounted = world.wirefs(&["mount", &world.url(), "mnt"]);
    for word in ["no journal is kept", disk.dir.to_str().unwrap(), "make 16 MiB free there"] {
        assert!(mounted.stderr.contains(word), "`{word}` is not in: {}", mounted.stderr);
    }
    mounted.succeeds();
    fs::write(world.path("mnt/file"), "text").unwrap();
    assert_eq!(world.read("export/file"), "text");
    assert!(world.status()["journal"].is_null());
    umount(&world);
    wait_for("the end", || journals(&world).is_empty());
    assert!(disk.hold().is_empty(), "something is left");
    disk.grow(&world, 64);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    assert!(!world.status()["journal"].is_null());
    umount(&world);
}
