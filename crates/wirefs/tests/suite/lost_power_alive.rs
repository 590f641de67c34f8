//! The server's machine loses power while a mount lives: what its disk did not have comes out of the journal, and programs see a pause.
//!
//! ```text
//!   program ── mount ──journal──┐        killed; the export is put back to what a disk may have kept
//!     (goes on)    server       └──────> another boot id
//! ```

use crate::journal::{alone_with, journals, umount};
use crate::lost_power::started_again;
use crate::world::{Ran, Server, World, wait_for};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Worlds that are made anew where the mount had the server's disk asked for before it was killed.
const TRIES: usize = 10;

/// A mount whose server's disk has all that was done so far.
fn synced() -> (World, Server) {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    // A busy machine takes a while to start the server again.
    alone_with(&world, &["--deadline", "300s"]);
    fs::write(world.path("mnt/before"), "before").unwrap();
    world.wirefs(&["sync", "mnt"]).succeeds();
    (world, server)
}

fn changes(world: &World) -> u64 {
    world.status()["journal"]["changes"].as_u64().unwrap()
}

/// The server and its machine are gone, and with it these names of the export.
fn lose(world: &World, server: Server, names: &[&str]) {
    server.kill(Signal::KILL);
    drop(server);
    for name in names {
        let path = world.path("export").join(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
}

fn quarantine(world: &World) -> String {
    world.wirefs(&["quarantine", "list", "--json"]).succeeds().trim().to_owned()
}

/// All files below a directory, and what they hold.
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

/// Files that stay open, in a directory that the server's disk has not; `None`: it has.
fn lost_with_open_files() -> Option<(World, Server, [File; 2], [u64; 2])> {
    let (world, server) = synced();
    let mount = world.path("mnt");
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
    wait_for("the answers", || world.status()["journal"]["unanswered_changes"] == 0);
    let is_lost = changes(&world) >= 8;
    lose(&world, server, &["d"]);
    is_lost.then(|| {
        let server = started_again(&world);
        (world, server, files, inodes)
    })
}

// S-92
#[test]
fn what_the_servers_disk_lost_is_there_again_and_open_files_go_on() {
    let (world, _server, [one, two], inodes) =
        (0..TRIES).find_map(|_| lost_with_open_files()).expect("the disk has always all of it");
    let mount = world.path("mnt");
    one.write_all_at(b"behind", 0).unwrap();
    one.sync_all().unwrap();
    two.write_all_at(b"behind", 0).unwrap();
    fs::write(mount.join("d/e/three"), "new").unwrap();
    assert_eq!(["d/one", "d/e/two"].map(|name| fs::metadata(mount.join(name)).unwrap().ino()), inodes);
    assert_eq!(one.metadata().unwrap().ino(), inodes[0]);
    let seen = contents(&mount);
    drop((one, two));
    umount(&world);
    assert_eq!(contents(&world.path("export")), seen);
    let text = |name: &str| seen[name].as_str();
    assert_eq!([text("d/one"), text("d/e/two")], ["behind one", "behind two"]);
    assert_eq!([text("d/closed"), text("d/e/three"), text("before")], ["closed", "new", "before"]);
    assert!(!seen.contains_key("d/draft"));
    assert_eq!(quarantine(&world), "[]");
    wait_for("the end", || journals(&world).is_empty());
}

/// Rows that are written to a database which the server's disk has lost then; `None`: it has.
fn lost_with_database() -> Option<(World, Server)> {
    const ROWS: &str = "create table t (n); insert into t values (1); insert into t values (2); \
         pragma journal_mode=truncate; insert into t values (3); insert into t values (4);";
    let (world, server) = synced();
    let ran = Ran::of(world.command("sqlite3").arg(world.path("mnt/db")).arg(ROWS));
    ran.succeeds();
    wait_for("the answers", || world.status()["journal"]["unanswered_changes"] == 0);
    let names = ["db", "db-journal"];
    // The journal of the last transactions is empty, and there.
    let is_lost = changes(&world) >= 30;
    lose(&world, server, &names);
    is_lost.then(|| {
        let server = started_again(&world);
        (world, server)
    })
}

// S-92 S-116
#[test]
fn a_database_is_there_again_with_all_rows_and_what_only_ordered_them_leaves_nothing() {
    let (world, _server) =
        (0..TRIES).find_map(|_| lost_with_database()).expect("the disk has always all of it");
    let rows = |database: &str| {
        let sql = "pragma integrity_check; insert into t values (5); select count(distinct n) from t;";
        Ran::of(world.command("sqlite3").arg(world.path(database)).arg(sql)).succeeds()
    };
    assert_eq!(rows("mnt/db"), "ok\n5\n");
    umount(&world);
    assert_eq!(rows("export/db"), "ok\n5\n");
    assert_eq!(quarantine(&world), "[]");
}

/// Rounds of changes that fail, or leave something else, when they are done twice: from the first argument up to the second.
///
/// They are a process of its own. A thread of the tests that has a file of the mount open while the server is down would keep the server from
/// being started: the child of the tests closes the file before it runs another program, and waits there for the thread's write.
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

/// A program that makes these rounds in a directory.
fn rounds(world: &World, dir: &Path, numbers: Range<usize>) -> Command {
    let mut command = world.command("sh");
    let (first, end) = (numbers.start.to_string(), numbers.end.to_string());
    command.args(["-c", ROUNDS, "rounds", &first, &end]).current_dir(dir);
    command
}

// S-92
#[test]
fn changes_that_were_under_way_are_done_once_and_their_programs_see_a_pause() {
    const LAST: usize = 60;
    let (world, server) = synced();
    let dir = world.path("mnt/d");
    fs::create_dir(&dir).unwrap();
    Ran::of(&mut rounds(&world, &dir, 0..10)).succeeds();
    wait_for("the answers", || world.status()["journal"]["unanswered_changes"] == 0);
    // From here on no change is answered.
    server.kill(Signal::STOP);
    Ran::of(&mut rounds(&world, &dir, 10..20)).succeeds();
    let program = rounds(&world, &dir, 20..LAST).stderr(Stdio::piped()).spawn().unwrap();
    let is_lost = changes(&world) > 60;
    // Where the disk was asked for meanwhile it has all that was answered, and nothing is lost.
    lose(&world, server, if is_lost { &["d"] } else { &[] });
    let _server = started_again(&world);
    let ended = program.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let seen = contents(&world.path("mnt"));
    umount(&world);
    assert_eq!(contents(&world.path("export")), seen);
    for number in 0..LAST {
        let moved = seen.get(&format!("d/dir{number}/moved")).map(String::as_str);
        let text = format!("text {number}");
        assert_eq!(moved, (!number.is_multiple_of(3)).then_some(text.as_str()), "{number}");
    }
    assert_eq!(quarantine(&world), "[]");
    wait_for("the end", || journals(&world).is_empty());
}

// S-93
#[test]
fn where_it_cannot_be_told_what_was_lost_all_of_it_is_kept_and_the_mount_goes_on() {
    let unlike = (0..TRIES).find_map(|_| {
        let (world, server) = synced();
        fs::create_dir(world.path("mnt/d")).unwrap();
        fs::write(world.path("mnt/d/f"), "ours").unwrap();
        wait_for("the answers", || world.status()["journal"]["unanswered_changes"] == 0);
        let is_lost = changes(&world) >= 3;
        lose(&world, server, &["d"]);
        world.write("export/d/f", "theirs");
        is_lost.then_some(world)
    });
    let world = unlike.expect("the disk has always all of it");
    let _server = started_again(&world);
    wait_for("the server", || fs::read_to_string(world.path("mnt/d/f")).is_ok_and(|text| text == "theirs"));
    let list = world.wirefs(&["quarantine", "list"]).succeeds();
    assert!(list.contains("write 4 bytes at 0") && list.contains("started again"), "{list}");
    fs::write(world.path("mnt/after"), "after").unwrap();
    umount(&world);
    assert_eq!(world.read("export/after"), "after");
    assert_eq!(world.read("export/d/f"), "theirs");
    wait_for("the end", || journals(&world).is_empty());
}

// S-92
#[test]
fn hard_links_that_the_servers_disk_lost_are_there_again() {
    let linked = (0..TRIES).find_map(|_| {
        let (world, server) = synced();
        let dir = world.path("mnt/d");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("one"), "one").unwrap();
        fs::write(dir.join("other"), "other").unwrap();
        fs::hard_link(dir.join("one"), dir.join("two")).unwrap();
        fs::hard_link(dir.join("one"), dir.join("three")).unwrap();
        // The server tells this mount of what it does here to the other names.
        fs::remove_file(dir.join("one")).unwrap();
        fs::rename(dir.join("other"), dir.join("three")).unwrap();
        fs::hard_link(dir.join("two"), dir.join("four")).unwrap();
        wait_for("the answers", || world.status()["journal"]["unanswered_changes"] == 0);
        let is_lost = changes(&world) >= 9;
        lose(&world, server, &["d"]);
        is_lost.then_some(world)
    });
    let world = linked.expect("the disk has always all of it");
    let _server = started_again(&world);
    fs::write(world.path("mnt/after"), "after").unwrap();
    let seen = contents(&world.path("mnt"));
    umount(&world);
    assert_eq!(contents(&world.path("export")), seen);
    assert_eq!([&seen["d/two"], &seen["d/three"], &seen["d/four"]], ["one", "other", "one"]);
    let stat = |name: &str| fs::metadata(world.path("export/d").join(name)).unwrap();
    assert_eq!((stat("two").ino(), stat("two").nlink()), (stat("four").ino(), 2));
    assert_eq!(quarantine(&world), "[]");
}

// S-92
#[test]
fn a_file_that_was_being_opened_goes_on() {
    let (world, server) = synced();
    // From here on no opening is answered.
    server.kill(Signal::STOP);
    let mut file = OpenOptions::new().write(true).open(world.path("mnt/before")).unwrap();
    file.write_all(b"after!").unwrap();
    drop(file);
    assert!(world.status()["journal"]["unanswered_changes"].as_u64().unwrap() > 0);
    lose(&world, server, &[]);
    let _server = started_again(&world);
    umount(&world);
    assert_eq!(world.read("export/before"), "after!");
    assert_eq!(quarantine(&world), "[]");
}
