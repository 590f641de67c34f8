//! A power failure of the server's machine with a live mount: changes that the disk lost are replayed from the journal,
//! and programs notice only a pause.
//!
//! ```text
//!   program ── mount ──journal──┐        killed; the export is put back to what a disk may have kept
//!     (goes on)    server       └──────> another boot id
//! ```

use crate::home::{Finished, Server, TestHome, wait_for};
use crate::journal::{exclusive_with, journals, umount};
use crate::lost_power::restarted_server;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Attempts in which the mount may sync the server's disk too early.
const TRIES: usize = 10;

/// Returns a mount whose server's disk has all changes so far.
fn synced() -> (TestHome, Server) {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    // On a busy machine the restart of the server takes a while.
    exclusive_with(&home, &["--deadline", "300s"]);
    fs::write(home.path("mnt/before"), "before").unwrap();
    home.wirefs(&["sync", "mnt"]).succeeds();
    (home, server)
}

fn changes(home: &TestHome) -> u64 {
    home.status()["journal"]["changes"].as_u64().unwrap()
}

/// Kills the server, and removes these names from the export, as a power failure would.
fn lose_names(home: &TestHome, server: Server, names: &[&str]) {
    server.kill(Signal::KILL);
    drop(server);
    for name in names {
        let path = home.path("export").join(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
}

fn quarantine(home: &TestHome) -> String {
    home.wirefs(&["quarantine", "list", "--json"]).succeeds().trim().to_owned()
}

/// Returns all files below a directory, with their contents.
fn contents(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(contents(&path).into_iter().map(|(below, text)| (format!("{name}/{below}"), text)));
            found.insert(name, "a directory".to_owned());
        } else {
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
    found
}

/// Returns open files in a directory that the server's disk has lost; `None` if it has not.
fn lost_with_open_files() -> Option<(TestHome, Server, [File; 2], [u64; 2])> {
    let (home, server) = synced();
    let mount = home.path("mnt");
    fs::create_dir(mount.join("d")).unwrap();
    fs::create_dir(mount.join("d/e")).unwrap();
    let open = |name: &str| {
        OpenOptions::new().read(true).write(true).create_new(true).open(mount.join(name)).unwrap()
    };
    let files = [open("d/one"), open("d/e/two")];
    files[0].write_all_at(b"before one", 0).unwrap();
    files[1].write_all_at(b"before two", 0).unwrap();
    fs::write(mount.join("d/draft"), "closed").unwrap();
    fs::rename(mount.join("d/draft"), mount.join("d/closed")).unwrap();
    let inodes = ["d/one", "d/e/two"].map(|name| fs::metadata(mount.join(name)).unwrap().ino());
    wait_for("the answers", || home.status()["journal"]["unanswered_changes"] == 0);
    let is_lost = changes(&home) >= 8;
    lose_names(&home, server, &["d"]);
    is_lost.then(|| {
        let server = restarted_server(&home);
        (home, server, files, inodes)
    })
}

// S-102
#[test]
fn changes_lost_by_the_servers_disk_are_replayed_and_open_files_work() {
    let (home, _server, [one, two], inodes) =
        (0..TRIES).find_map(|_| lost_with_open_files()).expect("the disk has always all of it");
    let mount = home.path("mnt");
    one.write_all_at(b"behind", 0).unwrap();
    one.sync_all().unwrap();
    two.write_all_at(b"behind", 0).unwrap();
    fs::write(mount.join("d/e/three"), "new").unwrap();
    assert_eq!(["d/one", "d/e/two"].map(|name| fs::metadata(mount.join(name)).unwrap().ino()), inodes);
    assert_eq!(one.metadata().unwrap().ino(), inodes[0]);
    let seen = contents(&mount);
    drop((one, two));
    umount(&home);
    assert_eq!(contents(&home.path("export")), seen);
    let text = |name: &str| seen[name].as_str();
    assert_eq!([text("d/one"), text("d/e/two")], ["behind one", "behind two"]);
    assert_eq!([text("d/closed"), text("d/e/three"), text("before")], ["closed", "new", "before"]);
    assert!(!seen.contains_key("d/draft"));
    assert_eq!(quarantine(&home), "[]");
    wait_for("the end", || journals(&home).is_empty());
}

/// Writes rows to a database that the server's disk then loses; `None` if it does not.
fn lost_with_database() -> Option<(TestHome, Server)> {
    const ROWS: &str = "create table t (n); insert into t values (1); insert into t values (2); \
         pragma journal_mode=truncate; insert into t values (3); insert into t values (4);";
    let (home, server) = synced();
    let ran = Finished::of(home.command("sqlite3").arg(home.path("mnt/db")).arg(ROWS));
    ran.succeeds();
    wait_for("the answers", || home.status()["journal"]["unanswered_changes"] == 0);
    let names = ["db", "db-journal"];
    // The database's journal of the last transactions is empty, and exists.
    let is_lost = changes(&home) >= 30;
    lose_names(&home, server, &names);
    is_lost.then(|| {
        let server = restarted_server(&home);
        (home, server)
    })
}

// S-102 S-22
#[test]
fn lost_database_is_restored_with_all_rows_and_barriers_leave_nothing() {
    let (home, _server) =
        (0..TRIES).find_map(|_| lost_with_database()).expect("the disk has always all of it");
    let rows = |database: &str| {
        let sql = "pragma integrity_check; insert into t values (5); select count(distinct n) from t;";
        Finished::of(home.command("sqlite3").arg(home.path(database)).arg(sql)).succeeds()
    };
    assert_eq!(rows("mnt/db"), "ok\n5\n");
    umount(&home);
    assert_eq!(rows("export/db"), "ok\n5\n");
    assert_eq!(quarantine(&home), "[]");
}

/// Rounds of non-idempotent changes: from the first argument up to the second.
///
/// They run in a process of their own. Otherwise a test thread with an open file of the mount would block the server's
/// start: the child of the tests closes the file before exec, and waits there for the thread's write.
const ROUNDS: &str = r#"
set -e
number=$1
while [ "$number" -lt "$2" ]; do
    mkdir "dir$number"
    printf 'text %s' "$number" > "new$number"
    mv -T "new$number" "dir$number/moved"
    if [ $((number % 3)) = 0 ]; then
        rm "dir$number/moved"
        rmdir "dir$number"
    fi
    number=$((number + 1))
done
"#;

/// Returns a program that runs these rounds in a directory.
fn rounds(home: &TestHome, dir: &Path, numbers: Range<usize>) -> Command {
    let mut command = home.command("sh");
    let (first, end) = (numbers.start.to_string(), numbers.end.to_string());
    command.args(["-c", ROUNDS, "rounds", &first, &end]).current_dir(dir);
    command
}

// S-102
#[test]
fn changes_in_flight_are_applied_once_with_a_pause() {
    const LAST: usize = 60;
    let (home, server) = synced();
    let dir = home.path("mnt/d");
    fs::create_dir(&dir).unwrap();
    Finished::of(&mut rounds(&home, &dir, 0..10)).succeeds();
    wait_for("the answers", || home.status()["journal"]["unanswered_changes"] == 0);
    // From here on no change is answered.
    server.kill(Signal::STOP);
    Finished::of(&mut rounds(&home, &dir, 10..20)).succeeds();
    let program = rounds(&home, &dir, 20..LAST).stderr(Stdio::piped()).spawn().unwrap();
    let is_lost = changes(&home) > 60;
    // If the disk was synced meanwhile, it has all answered changes, and nothing is lost.
    lose_names(&home, server, if is_lost { &["d"] } else { &[] });
    let _server = restarted_server(&home);
    let ended = program.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let seen = contents(&home.path("mnt"));
    umount(&home);
    assert_eq!(contents(&home.path("export")), seen);
    for number in 0..LAST {
        let moved = seen.get(&format!("d/dir{number}/moved")).map(String::as_str);
        let text = format!("text {number}");
        assert_eq!(moved, (!number.is_multiple_of(3)).then_some(text.as_str()), "{number}");
    }
    assert_eq!(quarantine(&home), "[]");
    wait_for("the end", || journals(&home).is_empty());
}

// S-104
#[test]
fn unexplained_losses_are_quarantined_and_the_mount_continues() {
    let unlike = (0..TRIES).find_map(|_| {
        let (home, server) = synced();
        fs::create_dir(home.path("mnt/d")).unwrap();
        fs::write(home.path("mnt/d/f"), "ours").unwrap();
        wait_for("the answers", || home.status()["journal"]["unanswered_changes"] == 0);
        let is_lost = changes(&home) >= 3;
        lose_names(&home, server, &["d"]);
        home.write("export/d/f", "theirs");
        is_lost.then_some(home)
    });
    let home = unlike.expect("the disk has always all of it");
    let _server = restarted_server(&home);
    wait_for("the server", || fs::read_to_string(home.path("mnt/d/f")).is_ok_and(|text| text == "theirs"));
    let list = home.wirefs(&["quarantine", "list"]).succeeds();
    assert!(list.contains("write 4 bytes at 0") && list.contains("started again"), "{list}");
    fs::write(home.path("mnt/after"), "after").unwrap();
    umount(&home);
    assert_eq!(home.read("export/after"), "after");
    assert_eq!(home.read("export/d/f"), "theirs");
    wait_for("the end", || journals(&home).is_empty());
}

// S-102
#[test]
fn lost_hard_links_are_restored() {
    let linked = (0..TRIES).find_map(|_| {
        let (home, server) = synced();
        let dir = home.path("mnt/d");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("one"), "one").unwrap();
        fs::write(dir.join("other"), "other").unwrap();
        fs::hard_link(dir.join("one"), dir.join("two")).unwrap();
        fs::hard_link(dir.join("one"), dir.join("three")).unwrap();
        // The server notifies this mount of effects on the other names.
        fs::remove_file(dir.join("one")).unwrap();
        fs::rename(dir.join("other"), dir.join("three")).unwrap();
        fs::hard_link(dir.join("two"), dir.join("four")).unwrap();
        wait_for("the answers", || home.status()["journal"]["unanswered_changes"] == 0);
        let is_lost = changes(&home) >= 9;
        lose_names(&home, server, &["d"]);
        is_lost.then_some(home)
    });
    let home = linked.expect("the disk has always all of it");
    let _server = restarted_server(&home);
    fs::write(home.path("mnt/after"), "after").unwrap();
    let seen = contents(&home.path("mnt"));
    umount(&home);
    assert_eq!(contents(&home.path("export")), seen);
    assert_eq!([&seen["d/two"], &seen["d/three"], &seen["d/four"]], ["one", "other", "one"]);
    let stat = |name: &str| fs::metadata(home.path("export/d").join(name)).unwrap();
    assert_eq!((stat("two").ino(), stat("two").nlink()), (stat("four").ino(), 2));
    assert_eq!(quarantine(&home), "[]");
}

// S-102
#[test]
fn open_in_flight_continues() {
    let (home, server) = synced();
    // From here on no open is answered.
    server.kill(Signal::STOP);
    let mut file = OpenOptions::new().write(true).open(home.path("mnt/before")).unwrap();
    file.write_all(b"after!").unwrap();
    drop(file);
    assert!(home.status()["journal"]["unanswered_changes"].as_u64().unwrap() > 0);
    lose_names(&home, server, &[]);
    let _server = restarted_server(&home);
    umount(&home);
    assert_eq!(home.read("export/before"), "after!");
    assert_eq!(quarantine(&home), "[]");
}
