//! What a mount that was killed leaves, and what becomes of it.

use crate::world::{Server, World, wait_for};
use rustix::process::{Signal, kill_process};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

/// A mount that is alone, so that what it changes is done before the server has it.
pub(crate) fn alone(world: &World) {
    alone_with(world, &[]);
}

/// The same, with more options.
pub(crate) fn alone_with(world: &World, options: &[&str]) {
    let url = world.url();
    world.wirefs(&[&["mount", "--journal"], options, &[&url, "mnt"]].concat()).succeeds();
    await_alone(world);
}

fn await_alone(world: &World) {
    fs::write(world.path("mnt/first"), "first").unwrap();
    wait_for("being alone", || world.status()["journal"]["alone"] == true);
    // What names are absent is known, and how much room there is.
    assert_eq!(fs::read_dir(world.path("mnt")).unwrap().count(), 1);
    wait_for("the server's figures", || {
        let status = world.status();
        let count = |kind: &str| status[kind]["Statfs"].as_u64().unwrap_or(0);
        count("requests") > 0 && count("in_flight") == 0
    });
    fs::create_dir(world.path("mnt/warm")).unwrap();
    fs::remove_dir(world.path("mnt/warm")).unwrap();
}

/// Kills the process that serves the mount, and takes away what is left of it.
fn die(world: &World) {
    kill_process(world.process(), Signal::KILL).unwrap();
    clear(world);
}

pub(crate) fn clear(world: &World) {
    wait_for("the end", || world.wirefs(&["umount", "-f", "mnt"]).code == Some(0));
}

pub(crate) fn umount(world: &World) {
    // Files are released behind the back of whoever closed them.
    wait_for("the unmount", || world.wirefs(&["umount", "mnt"]).code == Some(0));
}

/// Journals that are there, in use or not.
pub(crate) fn journals(world: &World) -> Vec<serde_json::Value> {
    let listed: serde_json::Value =
        serde_json::from_str(&world.wirefs(&["recover", "--list", "--json"]).succeeds()).unwrap();
    listed["journals"].as_array().unwrap().clone()
}

fn aside(world: &World) -> PathBuf {
    let listed: serde_json::Value =
        serde_json::from_str(&world.wirefs(&["recover", "--list", "--json"]).succeeds()).unwrap();
    assert_eq!(listed["quarantine"][0]["changes"], 1, "{listed}");
    PathBuf::from(listed["quarantine"][0]["dir"].as_str().unwrap())
}

/// Changes that the server does not have when the mount dies, since it is stopped meanwhile.
fn left(world: &World, server: &Server) {
    alone(world);
    // The process has a name for itself that needs no answer of its server.
    let process = world.process();
    // Programs at the server may be rivals in the export's root, which has changed a moment ago; in this one they are not.
    fs::create_dir(world.path("mnt/new")).unwrap();
    server.kill(Signal::STOP);
    fs::create_dir(world.path("mnt/new/inner")).unwrap();
    fs::write(world.path("mnt/new/draft"), "closed before the end").unwrap();
    fs::rename(world.path("mnt/new/draft"), world.path("mnt/new/file")).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    server.kill(Signal::CONT);
    clear(world);
}

fn is_all_there(world: &World) {
    assert_eq!(world.read("export/new/file"), "closed before the end");
    assert!(world.path("export/new/inner").is_dir());
    assert!(!world.path("export/new/draft").exists());
    assert_eq!(world.read("export/first"), "first");
}

// S-60
#[test]
fn what_was_closed_is_at_the_server_once_the_next_mount_stands() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    left(&world, &server);
    assert_eq!(journals(&world).len(), 1);
    let mounted = world.wirefs(&["mount", "--journal", &world.url(), "mnt"]);
    assert!(mounted.stderr.contains("were brought to the server"), "{}", mounted.stderr);
    mounted.succeeds();
    is_all_there(&world);
    assert_eq!(world.read("mnt/new/file"), "closed before the end");
    umount(&world);
    assert!(journals(&world).is_empty());
}

// S-60
#[test]
fn what_was_closed_comes_to_the_server_without_a_mount_as_well() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    left(&world, &server);
    let listed = world.wirefs(&["recover", "--list"]).succeeds();
    assert!(listed.contains(&format!("{}: ", world.url())), "{listed}");
    let said = world.wirefs(&["recover"]).succeeds();
    assert!(said.contains("were brought to the server"), "{said}");
    is_all_there(&world);
    let said = world.wirefs(&["recover", &world.url()]).succeeds();
    assert!(said.contains("nothing was left"), "{said}");
}

// S-60
#[test]
fn files_that_were_closed_before_a_kill_in_the_midst_of_many_are_whole() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    let process = world.process();
    let mut closed = Vec::new();
    for number in 0..10_000_u32 {
        let name = format!("d{}/f{number}", number % 7);
        let path = world.path(&format!("mnt/{name}"));
        let text = format!("{name} ").repeat(usize::try_from(number % 900).unwrap());
        let made = fs::create_dir_all(path.parent().unwrap())
            .and_then(|()| File::create(&path))
            .and_then(|mut file| file.write_all(text.as_bytes()));
        match made {
            Ok(()) => closed.push((name, text)),
            Err(_) => break,
        }
        if number == 300 {
            std::thread::spawn(move || kill_process(process, Signal::KILL));
        }
    }
    assert!(closed.len() > 300 && closed.len() < 10_000, "{}", closed.len());
    clear(&world);
    world.wirefs(&["mount", "--journal", &world.url(), "mnt"]).succeeds();
    // Of the last one only the descriptor may have been closed.
    for (name, text) in &closed[..closed.len() - 1] {
        assert_eq!(&world.read(&format!("export/{name}")), text, "{name}");
    }
    umount(&world);
}

// S-61
#[test]
fn what_the_server_does_not_take_is_kept_and_told() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    let process = world.process();
    fs::create_dir(world.path("mnt/own")).unwrap();
    server.kill(Signal::STOP);
    fs::create_dir(world.path("mnt/own/new")).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    fs::write(world.path("export/own/new"), "somebody else's").unwrap();
    server.kill(Signal::CONT);
    clear(&world);
    let mounted = world.wirefs(&["mount", "--journal", &world.url(), "mnt"]);
    assert!(mounted.stderr.contains("were NOT carried out"), "{}", mounted.stderr);
    mounted.succeeds();
    assert_eq!(world.read("export/own/new"), "somebody else's");
    let list = world.wirefs(&["quarantine", "list"]).succeeds();
    assert!(list.contains(" own/new: create directory"), "{list}");
    assert!(aside(&world).is_dir());
    let status = world.wirefs(&["status", "mnt"]).succeeds();
    assert!(status.contains("1 changes were NOT carried out"), "{status}");
    umount(&world);
}

// S-62
#[test]
fn a_damaged_record_costs_itself_and_what_is_behind_it_and_is_told() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    left(&world, &server);
    let dir = PathBuf::from(journals(&world)[0]["dir"].as_str().unwrap());
    let path = dir.join("00000001.journal");
    let mut bytes = fs::read(&path).unwrap();
    let text = b"closed before the end";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
    let mounted = world.wirefs(&["mount", "--journal", &world.url(), "mnt"]);
    assert!(mounted.stderr.contains("DAMAGED"), "{}", mounted.stderr);
    mounted.succeeds();
    assert!(world.path("export/new/inner").is_dir());
    assert_eq!(world.read("export/first"), "first");
    umount(&world);
}

// S-62
#[test]
fn a_journal_of_another_version_is_told_of_and_left_alone() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    left(&world, &server);
    let dir = PathBuf::from(journals(&world)[0]["dir"].as_str().unwrap());
    let path = dir.join("00000001.journal");
    let mut bytes = fs::read(&path).unwrap();
    bytes[16] = 99;
    fs::write(&path, &bytes).unwrap();
    let mounted = world.wirefs(&["mount", "--journal", &world.url(), "mnt"]);
    assert!(mounted.stderr.contains("version 99"), "{}", mounted.stderr);
    mounted.succeeds();
    assert_eq!(fs::read(&path).unwrap(), bytes);
    umount(&world);
}

// S-63
#[test]
fn a_mount_without_a_place_for_its_journal_says_so_and_works() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    world.write("home/.local/state/wirefs/journal", "in the way");
    fs::set_permissions(
        world.path("home/.local/state/wirefs"),
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    let mounted = world.wirefs(&["mount", "--journal", &world.url(), "mnt"]);
    assert!(mounted.stderr.contains("no journal is kept"), "{}", mounted.stderr);
    mounted.succeeds();
    assert!(world.status()["journal"].is_null());
    fs::write(world.path("mnt/file"), "text").unwrap();
    umount(&world);
    assert_eq!(world.read("export/file"), "text");
}

// S-63
#[test]
fn no_journal_is_kept_where_none_is_wished() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    let without = [vec!["--no-journal"], vec!["-o", "no_journal"], vec!["--mode", "window"]];
    for arguments in without {
        let url = world.url();
        let words: Vec<&str> = [&["mount"], &arguments[..], &[&url, "mnt"]].concat();
        world.wirefs(&words).succeeds();
        assert!(world.status()["journal"].is_null(), "{arguments:?}");
        umount(&world);
        assert!(!world.path("home/.local/state/wirefs/journal").exists(), "{arguments:?}");
    }
    // Who asks for what a mode cannot have is told, and not let believe that it is there.
    let url = world.url();
    let refused = world.wirefs(&["mount", "--journal", "--mode", "window", &url, "mnt"]);
    refused.fails_with(&["mode lease"]);
}

// S-63
#[test]
fn a_journal_is_kept_unless_something_else_is_said() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    for arguments in [vec![], vec!["--mode", "lease"], vec!["--journal", "-o", "no_journal"]] {
        let url = world.url();
        let words: Vec<&str> = [&["mount"], &arguments[..], &[&url, "mnt"]].concat();
        world.wirefs(&words).succeeds();
        assert!(!world.status()["journal"].is_null(), "{arguments:?}");
        umount(&world);
    }
}

// S-79
#[test]
fn a_sync_leaves_nothing_in_the_journal() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    for number in 0..50 {
        fs::write(world.path(&format!("mnt/f{number}")), "text").unwrap();
    }
    world.wirefs(&["sync", "mnt"]).succeeds();
    let journal = &world.status()["journal"];
    assert_eq!((&journal["changes"], &journal["bytes"]), (&0.into(), &0.into()), "{journal}");
    umount(&world);
}

#[test]
fn a_journal_is_the_users_alone_and_goes_with_a_mount_that_ends_in_order() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    let [journal] = &journals(&world)[..] else { panic!("one journal") };
    assert_eq!(journal["state"], "in use");
    let dir = PathBuf::from(journal["dir"].as_str().unwrap());
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    for file in fs::read_dir(&dir).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    umount(&world);
    assert!(!dir.exists());
    assert_eq!(world.read("export/first"), "first");
}

#[test]
fn a_mount_that_dies_with_its_server_gone_keeps_its_journal_until_there_is_one() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    let process = world.process();
    server.kill(Signal::STOP);
    fs::write(world.path("mnt/late"), "late").unwrap();
    kill_process(process, Signal::KILL).unwrap();
    server.kill(Signal::KILL);
    drop(server);
    clear(&world);
    world.wirefs(&["recover", &world.url()]).fails_with(&["wirefs"]);
    assert_eq!(journals(&world).len(), 1);
    let _again = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["recover"]).succeeds();
    assert_eq!(world.read("export/late"), "late");
}

#[test]
fn a_mount_that_dies_with_everything_at_the_server_leaves_nothing_to_do() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    world.wirefs(&["sync", "mnt"]).succeeds();
    die(&world);
    world.wirefs(&["recover"]).succeeds();
    assert_eq!(world.read("export/first"), "first");
    assert!(journals(&world).is_empty());
}

// S-94
#[test]
fn fsync_at_the_journal_does_not_wait_for_the_server_and_outlives_the_mount() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", "--journal", "--fsync=journal", &world.url(), "mnt"]).succeeds();
    await_alone(&world);
    let process = world.process();
    let syncs = || world.status()["journal"]["syncs"].as_u64().unwrap();
    // What waits for the server now would wait for it to go on.
    wait_for("quiet", || {
        let status = world.status();
        let in_flight = status["in_flight"].as_object().unwrap();
        in_flight.values().all(|count| count == 0) && status["journal"]["unanswered_changes"] == 0
    });
    let before = syncs();
    server.kill(Signal::STOP);
    let mut file = File::create(world.path("mnt/new")).unwrap();
    file.write_all(b"synced").unwrap();
    file.sync_all().unwrap();
    assert!(syncs() > before, "the local disk was not waited for");
    kill_process(process, Signal::KILL).unwrap();
    drop(file);
    server.kill(Signal::CONT);
    clear(&world);
    world.wirefs(&["recover"]).succeeds();
    assert_eq!(world.read("export/new"), "synced");
}

#[test]
fn fsync_at_a_journal_that_is_not_kept_is_a_mistake() {
    let world = World::new();
    for without in [["--no-journal", "--hard"], ["--mode", "window"]] {
        let url = world.url();
        let words: Vec<&str> = [&["mount", "--fsync", "journal"], &without[..], &[&url, "mnt"]].concat();
        let refused = world.wirefs(&words);
        assert_ne!(refused.code, Some(0));
        assert!(refused.stderr.contains("no journal is kept"), "{}", refused.stderr);
    }
}

// S-5
// S-60
#[test]
fn closing_a_large_file_takes_no_round_trip_and_a_kill_right_after_loses_none_of_it() {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 100;
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    alone(&world);
    let process = world.process();
    let piece = |number: usize| vec![u8::try_from(number % 251).unwrap(); PIECE];
    let mut file = File::create(world.path("mnt/large")).unwrap();
    for number in 0..PIECES {
        file.write_all(&piece(number)).unwrap();
    }
    // Who waited for an answer from here on would wait in vain.
    server.kill(Signal::STOP);
    drop(file);
    kill_process(process, Signal::KILL).unwrap();
    server.kill(Signal::CONT);
    clear(&world);
    world.wirefs(&["recover"]).succeeds();
    let there = fs::read(world.path("export/large")).unwrap();
    assert_eq!(there.len(), PIECE * PIECES);
    assert!(there.chunks(PIECE).enumerate().all(|(number, chunk)| chunk == piece(number)));
}
