//! Lock delegations of a mount with an exclusive session, and programs that request the locks elsewhere.

use crate::home::{Finished, SecondMount, TestHome, wait_for};
use crate::journal::{clear, exclusive};
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::process::{Signal, kill_process};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::process::{Child, Command, Stdio};

const ALL: FlockOperation = FlockOperation::NonBlockingLockExclusive;
const SHARED: FlockOperation = FlockOperation::NonBlockingLockShared;
const NONE: FlockOperation = FlockOperation::NonBlockingUnlock;

fn open(home: &TestHome, name: &str) -> File {
    OpenOptions::new().read(true).write(true).open(home.path(name)).unwrap()
}

fn delegated(home: &TestHome) -> u64 {
    home.status()["journal"]["lent"].as_u64().unwrap()
}

/// Starts a server, and a mount with an exclusive session and a file at the server.
fn with_file(home: &TestHome) -> crate::home::Server {
    let server = home.serve(&["--listen", &home.url()]);
    exclusive(home);
    fs::write(home.path("mnt/file"), "data").unwrap();
    wait_for("the server to have the file", || fs::read(home.path("export/file")).is_ok());
    server
}

// S-46
#[test]
fn server_program_gets_free_delegated_locks_and_waits_for_held_ones() {
    let home = TestHome::new();
    let _server = with_file(&home);
    let (here, at_server) = (open(&home, "mnt/file"), open(&home, "export/file"));
    for lock in [fcntl_lock::<&File>, flock::<&File>] {
        lock(&here, ALL).unwrap();
        assert!(lock(&at_server, SHARED).is_err());
        // A held lock is kept when its delegation ends.
        wait_for("the end of the loan", || delegated(&home) == 0);
        assert!(lock(&at_server, SHARED).is_err());
        lock(&here, NONE).unwrap();
        wait_for("a lock that is free", || lock(&at_server, ALL).is_ok());
        assert!(lock(&here, ALL).is_err());
        lock(&at_server, NONE).unwrap();
        // A delegated file whose lock is not held.
        wait_for("the lock", || lock(&here, ALL).is_ok());
        lock(&here, NONE).unwrap();
        wait_for("a lock that is delegated", || lock(&at_server, ALL).is_ok());
        lock(&at_server, NONE).unwrap();
    }
}

// S-43
#[test]
fn lock_of_a_read_only_file_is_released_at_close() {
    let home = TestHome::new();
    let _server = with_file(&home);
    for _ in 0..3 {
        assert_eq!(home.read("mnt/file"), "data");
    }
    let at_server = open(&home, "export/file");
    for _ in 0..3 {
        let here = File::open(home.path("mnt/file")).unwrap();
        fcntl_lock(&here, SHARED).unwrap();
        assert!(fcntl_lock(&at_server, ALL).is_err());
        drop(here);
        wait_for("a lock that nobody holds", || fcntl_lock(&at_server, ALL).is_ok());
        fcntl_lock(&at_server, NONE).unwrap();
    }
}

// S-42
#[test]
fn second_mount_conflicts_with_held_locks_and_not_with_delegations() {
    let home = TestHome::new();
    let _server = with_file(&home);
    let (held, free) = (open(&home, "mnt/file"), home.path("mnt/free"));
    let free = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(free).unwrap();
    fcntl_lock(&held, ALL).unwrap();
    for _ in 0..3 {
        fcntl_lock(&free, ALL).unwrap();
        fcntl_lock(&free, NONE).unwrap();
    }
    let _second = SecondMount::mount(&home, "lease");
    assert_eq!(delegated(&home), 0);
    let (other_held, other_free) = (open(&home, "other/file"), open(&home, "other/free"));
    assert!(fcntl_lock(&other_held, SHARED).is_err());
    fcntl_lock(&other_free, ALL).unwrap();
    assert!(fcntl_lock(&free, SHARED).is_err());
    fcntl_lock(&held, NONE).unwrap();
    wait_for("the released lock", || fcntl_lock(&other_held, ALL).is_ok());
}

/// Takes a lock of each family through a mount, and kills the mount. The result holds the files open.
fn killed_with_locks(home: &TestHome) -> (File, File) {
    fs::write(home.path("mnt/other"), "data").unwrap();
    wait_for("the server to have the file", || fs::read(home.path("export/other")).is_ok());
    let (ranges, whole) = (open(home, "mnt/file"), open(home, "mnt/other"));
    fcntl_lock(&ranges, ALL).unwrap();
    flock(&whole, ALL).unwrap();
    kill_process(home.process(), Signal::KILL).unwrap();
    clear(home);
    (ranges, whole)
}

// S-79
#[test]
fn locks_of_a_killed_mount_are_free_after_the_next_mount() {
    let home = TestHome::new();
    let _server = with_file(&home);
    let _held = killed_with_locks(&home);
    let at_server = open(&home, "export/file");
    assert!(fcntl_lock(&at_server, SHARED).is_err(), "nobody says yet that it is over");
    home.wirefs(&["mount", "--journal", &home.url(), "mnt"]).succeeds();
    fcntl_lock(open(&home, "mnt/file"), ALL).unwrap();
    flock(open(&home, "mnt/other"), ALL).unwrap();
}

// S-79
#[test]
fn locks_of_a_killed_mount_are_free_for_others_after_recovery() {
    let home = TestHome::new();
    let _server = with_file(&home);
    let _second = SecondMount::mount(&home, "window");
    let _held = killed_with_locks(&home);
    let (ranges, whole) = (open(&home, "other/file"), open(&home, "other/other"));
    assert!(fcntl_lock(&ranges, SHARED).is_err() && flock(&whole, SHARED).is_err());
    home.wirefs(&["recover"]).succeeds();
    fcntl_lock(&ranges, ALL).unwrap();
    flock(&whole, ALL).unwrap();
}

fn sqlite(home: &TestHome, database: &str, rows: std::ops::Range<u32>) -> Child {
    let mut command: Command = home.command("sqlite3");
    let mut child = command.arg(home.path(database)).stdin(Stdio::piped()).spawn().unwrap();
    let mut script = String::from(".bail on\n.timeout 120000\n");
    for row in rows {
        script.push_str(&format!("insert into t values ({row});\n"));
    }
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    child
}

fn ask(home: &TestHome, database: &str, sql: &str) -> String {
    Finished::of(home.command("sqlite3").arg(home.path(database)).args([".timeout 120000", sql])).succeeds()
}

// S-45
#[test]
fn sqlite_on_an_exclusive_mount_sends_few_lock_requests() {
    let home = TestHome::new();
    let _server = with_file(&home);
    ask(&home, "mnt/db", "create table t (n integer);");
    let requests = || home.status()["requests"]["Lock"].as_u64().unwrap();
    let before = requests();
    assert!(sqlite(&home, "mnt/db", 0..40).wait().unwrap().success());
    // Six requests for each transaction without a delegation. Some need them: on a slow machine other programs get the
    // lock in between.
    let (locks, count) = (requests() - before, home.status()["journal"]["locks"].as_u64().unwrap());
    assert!(locks < 40 * 6 && count > 40, "{locks} asked for, {count} answered here");
    assert_eq!(ask(&home, "export/db", "select count(*) from t; pragma integrity_check;"), "40\nok\n");
}

// S-42
#[test]
fn sqlite_on_an_exclusive_mount_and_at_the_server_loses_no_transaction() {
    let home = TestHome::new();
    let _server = with_file(&home);
    ask(&home, "mnt/db", "create table t (n integer);");
    let writers = [
        sqlite(&home, "mnt/db", 0..25),
        sqlite(&home, "mnt/db", 100..125),
        sqlite(&home, "export/db", 200..225),
    ];
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    for database in ["mnt/db", "export/db"] {
        let output =
            ask(&home, database, "select count(*), count(distinct n) from t; pragma integrity_check;");
        assert_eq!(output, "75|75\nok\n");
    }
}
