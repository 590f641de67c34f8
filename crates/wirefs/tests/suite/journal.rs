//! Journals of killed mounts, and their recovery.

use crate::home::{Server, TestHome, wait_for};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

/// Mounts with an exclusive session, so that changes are answered before the server has them.
pub(crate) fn exclusive(home: &TestHome) {
    exclusive_with(home, &[]);
}

/// The same, with more options.
pub(crate) fn exclusive_with(home: &TestHome, options: &[&str]) {
    let url = home.url();
    home.wirefs(&[&["mount", "--journal"], options, &[&url, "mnt"]].concat()).succeeds();
    await_exclusive(home);
}

fn await_exclusive(home: &TestHome) {
    fs::write(home.path("mnt/first"), "first").unwrap();
    wait_for("being alone", || home.status()["journal"]["alone"] == true);
    // Absent names are known, and the free space.
    assert_eq!(fs::read_dir(home.path("mnt")).unwrap().count(), 1);
    wait_for("the server's figures", || {
        let status = home.status();
        let count = |kind: &str| status[kind]["Statfs"].as_u64().unwrap_or(0);
        count("requests") > 0 && count("in_flight") == 0
    });
    fs::create_dir(home.path("mnt/warm")).unwrap();
    fs::remove_dir(home.path("mnt/warm")).unwrap();
}

/// Kills the process of the mount, and removes the mount.
fn kill_mount(home: &TestHome) {
    kill_process(home.process(), Signal::KILL).unwrap();
    clear(home);
}

pub(crate) fn clear(home: &TestHome) {
    wait_for("the end", || home.wirefs(&["umount", "-f", "mnt"]).code == Some(0));
}

pub(crate) fn umount(home: &TestHome) {
    // Files are released asynchronously after their close.
    wait_for("the unmount", || home.wirefs(&["umount", "mnt"]).code == Some(0));
}

/// Returns the existing journals, in use or not.
pub(crate) fn journals(home: &TestHome) -> Vec<serde_json::Value> {
    let listed: serde_json::Value =
        serde_json::from_str(&home.wirefs(&["recover", "--list", "--json"]).succeeds()).unwrap();
    listed["journals"].as_array().unwrap().clone()
}

fn quarantine_dir(home: &TestHome) -> PathBuf {
    let listed: serde_json::Value =
        serde_json::from_str(&home.wirefs(&["recover", "--list", "--json"]).succeeds()).unwrap();
    assert_eq!(listed["quarantine"][0]["changes"], 1, "{listed}");
    PathBuf::from(listed["quarantine"][0]["dir"].as_str().unwrap())
}

/// Leaves changes that the server does not have when the mount is killed, since it is stopped meanwhile.
fn leave_pending(home: &TestHome, server: &Server) {
    exclusive(home);
    // The process's own name needs no reply of its server.
    let process = home.process();
    // Server programs may conflict in the export's root, which has just changed; in this directory they do not.
    fs::create_dir(home.path("mnt/new")).unwrap();
    server.kill(Signal::STOP);
    fs::create_dir(home.path("mnt/new/inner")).unwrap();
    fs::write(home.path("mnt/new/draft"), "closed before the end").unwrap();
    fs::rename(home.path("mnt/new/draft"), home.path("mnt/new/file")).unwrap();
    kill(process);
    server.kill(Signal::CONT);
    clear(home);
}

/// Kills a process, and waits for its end: until then it has its journal's lock.
fn kill(process: Pid) {
    let end = pidfd_open(process, PidfdFlags::empty()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    let mut ends = [PollFd::new(&end, PollFlags::IN)];
    wait_for("its end", || rustix::event::poll(&mut ends, Some(&Timespec::default())).unwrap() == 1);
}

fn assert_complete(home: &TestHome) {
    assert_eq!(home.read("export/new/file"), "closed before the end");
    assert!(home.path("export/new/inner").is_dir());
    assert!(!home.path("export/new/draft").exists());
    assert_eq!(home.read("export/first"), "first");
}

// S-89
#[test]
fn closed_files_are_at_the_server_after_the_next_mount() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    leave_pending(&home, &server);
    assert_eq!(journals(&home).len(), 1);
    let mounted = home.wirefs(&["mount", "--journal", &home.url(), "mnt"]);
    assert!(mounted.stderr.contains("have now been sent"), "{}", mounted.stderr);
    mounted.succeeds();
    assert_complete(&home);
    assert_eq!(home.read("mnt/new/file"), "closed before the end");
    umount(&home);
    assert!(journals(&home).is_empty());
}

// S-89
#[test]
fn closed_files_are_at_the_server_after_recover() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    leave_pending(&home, &server);
    let listed = home.wirefs(&["recover", "--list"]).succeeds();
    assert!(listed.contains(&format!("{}: ", home.url())), "{listed}");
    let output = home.wirefs(&["recover"]).succeeds();
    assert!(output.contains("have now been sent"), "{output}");
    assert_complete(&home);
    let output = home.wirefs(&["recover", &home.url()]).succeeds();
    assert!(output.contains("no killed mount has unsent changes"), "{output}");
}

// S-89
#[test]
fn files_closed_before_a_kill_are_complete() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    let process = home.process();
    let mut closed = Vec::new();
    for number in 0..10_000_u32 {
        let name = format!("d{}/f{number}", number % 7);
        let path = home.path(&format!("mnt/{name}"));
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
    clear(&home);
    home.wirefs(&["mount", "--journal", &home.url(), "mnt"]).succeeds();
    // The last one may be closed by descriptor only.
    for (name, text) in &closed[..closed.len() - 1] {
        assert_eq!(&home.read(&format!("export/{name}")), text, "{name}");
    }
    umount(&home);
}

// S-91
#[test]
fn rejected_changes_are_quarantined_and_reported() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    let process = home.process();
    fs::create_dir(home.path("mnt/own")).unwrap();
    server.kill(Signal::STOP);
    fs::create_dir(home.path("mnt/own/new")).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    fs::write(home.path("export/own/new"), "somebody else's").unwrap();
    server.kill(Signal::CONT);
    clear(&home);
    let mounted = home.wirefs(&["mount", "--journal", &home.url(), "mnt"]);
    assert!(mounted.stderr.contains("were NOT carried out"), "{}", mounted.stderr);
    mounted.succeeds();
    assert_eq!(home.read("export/own/new"), "somebody else's");
    let list = home.wirefs(&["quarantine", "list"]).succeeds();
    assert!(list.contains(" own/new: create directory"), "{list}");
    assert!(quarantine_dir(&home).is_dir());
    let status = home.wirefs(&["status", "mnt"]).succeeds();
    assert!(status.contains("1 changes were NOT carried out"), "{status}");
    umount(&home);
}

// S-93
#[test]
fn damaged_record_loses_itself_and_later_ones_and_is_reported() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    leave_pending(&home, &server);
    let dir = PathBuf::from(journals(&home)[0]["dir"].as_str().unwrap());
    let path = dir.join("00000001.journal");
    let mut bytes = fs::read(&path).unwrap();
    let text = b"closed before the end";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
    let mounted = home.wirefs(&["mount", "--journal", &home.url(), "mnt"]);
    assert!(mounted.stderr.contains("DAMAGED"), "{}", mounted.stderr);
    mounted.succeeds();
    assert!(home.path("export/new/inner").is_dir());
    assert_eq!(home.read("export/first"), "first");
    umount(&home);
}

// S-93
#[test]
fn journal_of_another_version_is_reported_and_unchanged() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    leave_pending(&home, &server);
    let dir = PathBuf::from(journals(&home)[0]["dir"].as_str().unwrap());
    let path = dir.join("00000001.journal");
    let mut bytes = fs::read(&path).unwrap();
    bytes[16] = 99;
    fs::write(&path, &bytes).unwrap();
    let mounted = home.wirefs(&["mount", "--journal", &home.url(), "mnt"]);
    assert!(mounted.stderr.contains("version 99"), "{}", mounted.stderr);
    mounted.succeeds();
    assert_eq!(fs::read(&path).unwrap(), bytes);
    umount(&home);
}

// S-94
#[test]
fn mount_without_a_journal_directory_reports_it_and_works() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    home.write("home/.local/state/wirefs/journal", "in the way");
    fs::set_permissions(
        home.path("home/.local/state/wirefs"),
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    let mounted = home.wirefs(&["mount", "--journal", &home.url(), "mnt"]);
    assert!(mounted.stderr.contains("no journal"), "{}", mounted.stderr);
    mounted.succeeds();
    assert!(home.status()["journal"].is_null());
    fs::write(home.path("mnt/file"), "text").unwrap();
    umount(&home);
    assert_eq!(home.read("export/file"), "text");
}

// S-94
#[test]
fn no_journal_exists_if_disabled() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    let without = [vec!["--no-journal"], vec!["-o", "no_journal"], vec!["--mode", "window"]];
    for arguments in without {
        let url = home.url();
        let words: Vec<&str> = [&["mount"], &arguments[..], &[&url, "mnt"]].concat();
        home.wirefs(&words).succeeds();
        assert!(home.status()["journal"].is_null(), "{arguments:?}");
        umount(&home);
        assert!(!home.path("home/.local/state/wirefs/journal").exists(), "{arguments:?}");
    }
    // An option that the mode does not support is an error, not ignored.
    let url = home.url();
    let refused = home.wirefs(&["mount", "--journal", "--mode", "window", &url, "mnt"]);
    refused.fails_with(&["mode lease"]);
}

// S-94
#[test]
fn journal_is_the_default() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    for arguments in [vec![], vec!["--mode", "lease"], vec!["--journal", "-o", "no_journal"]] {
        let url = home.url();
        let words: Vec<&str> = [&["mount"], &arguments[..], &[&url, "mnt"]].concat();
        home.wirefs(&words).succeeds();
        assert!(!home.status()["journal"].is_null(), "{arguments:?}");
        umount(&home);
    }
}

// S-95
#[test]
fn sync_empties_the_journal() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    for number in 0..50 {
        fs::write(home.path(&format!("mnt/f{number}")), "text").unwrap();
    }
    home.wirefs(&["sync", "mnt"]).succeeds();
    let journal = &home.status()["journal"];
    assert_eq!((&journal["changes"], &journal["bytes"]), (&0.into(), &0.into()), "{journal}");
    umount(&home);
}

#[test]
fn journal_is_private_and_removed_by_a_clean_unmount() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    let [journal] = &journals(&home)[..] else { panic!("one journal") };
    assert_eq!(journal["state"], "in use");
    let dir = PathBuf::from(journal["dir"].as_str().unwrap());
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    for file in fs::read_dir(&dir).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    umount(&home);
    assert!(!dir.exists());
    assert_eq!(home.read("export/first"), "first");
}

#[test]
fn journal_of_a_killed_mount_is_kept_until_a_server_is_reachable() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    let process = home.process();
    server.kill(Signal::STOP);
    fs::write(home.path("mnt/late"), "late").unwrap();
    kill_process(process, Signal::KILL).unwrap();
    server.kill(Signal::KILL);
    drop(server);
    clear(&home);
    home.wirefs(&["recover", &home.url()]).fails_with(&["wirefs"]);
    assert_eq!(journals(&home).len(), 1);
    let _again = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["recover"]).succeeds();
    assert_eq!(home.read("export/late"), "late");
}

#[test]
fn mount_killed_after_a_sync_leaves_nothing_to_recover() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    home.wirefs(&["sync", "mnt"]).succeeds();
    kill_mount(&home);
    home.wirefs(&["recover"]).succeeds();
    assert_eq!(home.read("export/first"), "first");
    assert!(journals(&home).is_empty());
}

// S-20
#[test]
fn journal_fsync_needs_no_server_and_survives_a_kill() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--journal", "--fsync=journal", &home.url(), "mnt"]).succeeds();
    await_exclusive(&home);
    let process = home.process();
    let syncs = || home.status()["journal"]["syncs"].as_u64().unwrap();
    // Requests pending now would wait for the stopped server.
    wait_for("quiet", || {
        let status = home.status();
        let in_flight = status["in_flight"].as_object().unwrap();
        in_flight.values().all(|count| count == 0) && status["journal"]["unanswered_changes"] == 0
    });
    let before = syncs();
    server.kill(Signal::STOP);
    let mut file = File::create(home.path("mnt/new")).unwrap();
    file.write_all(b"synced").unwrap();
    file.sync_all().unwrap();
    assert!(syncs() > before, "the local disk was not waited for");
    kill_process(process, Signal::KILL).unwrap();
    drop(file);
    server.kill(Signal::CONT);
    clear(&home);
    home.wirefs(&["recover"]).succeeds();
    assert_eq!(home.read("export/new"), "synced");
}

#[test]
fn journal_fsync_without_a_journal_is_an_error() {
    let home = TestHome::new();
    for without in [["--no-journal", "--hard"], ["--mode", "window"]] {
        let url = home.url();
        let words: Vec<&str> = [&["mount", "--fsync", "journal"], &without[..], &[&url, "mnt"]].concat();
        let refused = home.wirefs(&words);
        assert_ne!(refused.code, Some(0));
        assert!(refused.stderr.contains("no journal"), "{}", refused.stderr);
    }
}

// S-12
// S-89
#[test]
fn close_of_a_large_file_needs_no_round_trip_and_survives_a_kill() {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 100;
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    exclusive(&home);
    let process = home.process();
    let piece = |number: usize| vec![u8::try_from(number % 251).unwrap(); PIECE];
    let mut file = File::create(home.path("mnt/large")).unwrap();
    for number in 0..PIECES {
        file.write_all(&piece(number)).unwrap();
    }
    // From here on a wait for a reply would never end.
    server.kill(Signal::STOP);
    drop(file);
    kill_process(process, Signal::KILL).unwrap();
    server.kill(Signal::CONT);
    clear(&home);
    home.wirefs(&["recover"]).succeeds();
    let there = fs::read(home.path("export/large")).unwrap();
    assert_eq!(there.len(), PIECE * PIECES);
    assert!(there.chunks(PIECE).enumerate().all(|(number, chunk)| chunk == piece(number)));
}
