//! Locks of a mount that is alone, and programs that want them elsewhere.

use crate::journal::{alone, clear};
use crate::world::{Other, Ran, World, wait_for};
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::process::{Signal, kill_process};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::process::{Child, Command, Stdio};

const ALL: FlockOperation = FlockOperation::NonBlockingLockExclusive;
const SHARED: FlockOperation = FlockOperation::NonBlockingLockShared;
const NONE: FlockOperation = FlockOperation::NonBlockingUnlock;

fn open(world: &World, name: &str) -> File {
    OpenOptions::new().read(true).write(true).open(world.path(name)).unwrap()
}

fn lent(world: &World) -> u64 {
    world.status()["journal"]["lent"].as_u64().unwrap()
}

/// A server, and a mount that is alone, with a file that the server has.
fn with_file(world: &World) -> crate::world::Server {
    let server = world.serve(&["--listen", &world.url()]);
    alone(world);
    fs::write(world.path("mnt/file"), "data").unwrap();
    wait_for("the server to have the file", || fs::read(world.path("export/file")).is_ok());
    server
}

// S-101
#[test]
fn a_program_at_the_server_gets_what_a_lone_mount_does_not_hold_and_waits_for_what_it_does() {
    let world = World::new();
    let _server = with_file(&world);
    let (here, there) = (open(&world, "mnt/file"), open(&world, "export/file"));
    for lock in [fcntl_lock::<&File>, flock::<&File>] {
        lock(&here, ALL).unwrap();
        assert!(lock(&there, SHARED).is_err());
        // What is held goes on to be when it is lent no more.
        wait_for("the end of the loan", || lent(&world) == 0);
        assert!(lock(&there, SHARED).is_err());
        lock(&here, NONE).unwrap();
        wait_for("a lock that is free", || lock(&there, ALL).is_ok());
        assert!(lock(&here, ALL).is_err());
        lock(&there, NONE).unwrap();
        // One that is lent and not held.
        wait_for("the lock", || lock(&here, ALL).is_ok());
        lock(&here, NONE).unwrap();
        wait_for("a lock that is lent", || lock(&there, ALL).is_ok());
        lock(&there, NONE).unwrap();
    }
}

// S-120
#[test]
fn a_lock_taken_through_a_file_that_is_only_read_falls_when_that_is_closed() {
    let world = World::new();
    let _server = with_file(&world);
    for _ in 0..3 {
        assert_eq!(world.read("mnt/file"), "data");
    }
    let there = open(&world, "export/file");
    for _ in 0..3 {
        let here = File::open(world.path("mnt/file")).unwrap();
        fcntl_lock(&here, SHARED).unwrap();
        assert!(fcntl_lock(&there, ALL).is_err());
        drop(here);
        wait_for("a lock that nobody holds", || fcntl_lock(&there, ALL).is_ok());
        fcntl_lock(&there, NONE).unwrap();
    }
}

// S-102
#[test]
fn a_second_mount_meets_what_the_first_one_holds_and_not_what_it_was_lent() {
    let world = World::new();
    let _server = with_file(&world);
    let (held, free) = (open(&world, "mnt/file"), world.path("mnt/free"));
    let free = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(free).unwrap();
    fcntl_lock(&held, ALL).unwrap();
    for _ in 0..3 {
        fcntl_lock(&free, ALL).unwrap();
        fcntl_lock(&free, NONE).unwrap();
    }
    let _other = Other::mount(&world, "lease");
    assert_eq!(lent(&world), 0);
    let (other_held, other_free) = (open(&world, "other/file"), open(&world, "other/free"));
    assert!(fcntl_lock(&other_held, SHARED).is_err());
    fcntl_lock(&other_free, ALL).unwrap();
    assert!(fcntl_lock(&free, SHARED).is_err());
    fcntl_lock(&held, NONE).unwrap();
    wait_for("the released lock", || fcntl_lock(&other_held, ALL).is_ok());
}

/// Takes a lock of each family through a mount, which is then killed. What holds them lives as long as the pair does.
fn killed_with_locks(world: &World) -> (File, File) {
    fs::write(world.path("mnt/other"), "data").unwrap();
    wait_for("the server to have the file", || fs::read(world.path("export/other")).is_ok());
    let (ranges, whole) = (open(world, "mnt/file"), open(world, "mnt/other"));
    fcntl_lock(&ranges, ALL).unwrap();
    flock(&whole, ALL).unwrap();
    kill_process(world.process(), Signal::KILL).unwrap();
    clear(world);
    (ranges, whole)
}

// S-123
#[test]
fn locks_of_a_mount_that_was_killed_are_free_once_the_next_one_stands() {
    let world = World::new();
    let _server = with_file(&world);
    let _held = killed_with_locks(&world);
    let there = open(&world, "export/file");
    assert!(fcntl_lock(&there, SHARED).is_err(), "nobody says yet that it is over");
    world.wirefs(&["mount", "--journal", &world.url(), "mnt"]).succeeds();
    fcntl_lock(open(&world, "mnt/file"), ALL).unwrap();
    flock(open(&world, "mnt/other"), ALL).unwrap();
}

// S-123
#[test]
fn locks_of_a_mount_that_was_killed_are_free_for_others_once_its_journal_was_brought() {
    let world = World::new();
    let _server = with_file(&world);
    let _other = Other::mount(&world, "window");
    let _held = killed_with_locks(&world);
    let (ranges, whole) = (open(&world, "other/file"), open(&world, "other/other"));
    assert!(fcntl_lock(&ranges, SHARED).is_err() && flock(&whole, SHARED).is_err());
    world.wirefs(&["recover"]).succeeds();
    fcntl_lock(&ranges, ALL).unwrap();
    flock(&whole, ALL).unwrap();
}

fn sqlite(world: &World, database: &str, rows: std::ops::Range<u32>) -> Child {
    let mut command: Command = world.command("sqlite3");
    let mut child = command.arg(world.path(database)).stdin(Stdio::piped()).spawn().unwrap();
    let mut script = String::from(".bail on\n.timeout 120000\n");
    for row in rows {
        script.push_str(&format!("insert into t values ({row});\n"));
    }
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    child
}

fn ask(world: &World, database: &str, sql: &str) -> String {
    Ran::of(world.command("sqlite3").arg(world.path(database)).args([".timeout 120000", sql])).succeeds()
}

// S-100
#[test]
fn transactions_of_sqlite_on_a_lone_mount_ask_for_few_locks() {
    let world = World::new();
    let _server = with_file(&world);
    ask(&world, "mnt/db", "create table t (n integer);");
    let asked = || world.status()["requests"]["Lock"].as_u64().unwrap();
    let before = asked();
    assert!(sqlite(&world, "mnt/db", 0..40).wait().unwrap().success());
    // Six for each that is not lent. Some are: on a slow machine it takes so long that others are given a turn in between.
    let (locks, count) = (asked() - before, world.status()["journal"]["locks"].as_u64().unwrap());
    assert!(locks < 40 * 6 && count > 40, "{locks} asked for, {count} answered here");
    assert_eq!(ask(&world, "export/db", "select count(*) from t; pragma integrity_check;"), "40\nok\n");
}

// S-102
#[test]
fn sqlite_on_a_lone_mount_and_at_the_server_lose_no_transaction_of_each_other() {
    let world = World::new();
    let _server = with_file(&world);
    ask(&world, "mnt/db", "create table t (n integer);");
    let writers = [
        sqlite(&world, "mnt/db", 0..25),
        sqlite(&world, "mnt/db", 100..125),
        sqlite(&world, "export/db", 200..225),
    ];
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    for database in ["mnt/db", "export/db"] {
        let told =
            ask(&world, database, "select count(*), count(distinct n) from t; pragma integrity_check;");
        assert_eq!(told, "75|75\nok\n");
    }
}
