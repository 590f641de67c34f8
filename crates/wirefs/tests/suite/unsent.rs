//! Unmounts whose server does not take the last changes.

use crate::home::{Finished, Server, TestHome, is_alive, wait_for};
use crate::journal::{exclusive_with, journals};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Stdio;

/// Leaves one change that the frozen server does not have. Returns the process of the mount.
fn leave_one(home: &TestHome, server: &Server, deadline: &str) -> Pid {
    exclusive_with(home, &[deadline]);
    let process = home.process();
    fs::create_dir(home.path("mnt/new")).unwrap();
    home.wirefs(&["sync", "mnt"]).succeeds();
    server.kill(Signal::STOP);
    fs::create_dir(home.path("mnt/new/inner")).unwrap();
    process
}

/// The status names the change until it is delivered, and how it is.
fn assert_shown_until_delivered(home: &TestHome, server: &Server) {
    assert!(!home.is_mounted());
    let status = home.wirefs(&["status"]).succeeds();
    for word in [&home.url(), "1 change ", "wirefs recover"] {
        assert!(status.contains(word), "no `{word}` in {status}");
    }
    server.kill(Signal::CONT);
    home.wirefs(&["recover"]).succeeds();
    assert!(home.path("export/new/inner").is_dir());
    let status = home.wirefs(&["status"]).succeeds();
    assert!(!status.contains("1 change "), "{status}");
}

// S-75
#[test]
fn umount_reports_changes_that_a_frozen_server_did_not_take() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    let process = leave_one(&home, &server, "--deadline=1s");
    let error = home.wirefs(&["umount", "mnt"]).fails_with(&["1 change ", "wirefs recover", &home.url()]);
    let journal = journals(&home)[0]["dir"].as_str().unwrap().to_owned();
    assert!(error.contains(&journal), "{error}");
    wait_for("the process to end", || !is_alive(process));
    assert_shown_until_delivered(&home, &server);
}

// S-132
#[test]
fn umount_ends_although_another_mount_namespace_keeps_the_mount() {
    let home = TestHome::new();
    let _server = home.mounted();
    let mut other = home.command("unshare");
    other.args(["--mount", "--propagation", "private", "sh", "-c", ": >inside; exec cat"]);
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the other namespace", || home.path("inside").exists());
    let process = home.process();
    let ended = home.wirefs(&["umount", "mnt"]);
    // Programs of other tests may have namespaces with the mount too.
    for word in ["is unmounted here", "the server has everything", "the mount namespace of process "] {
        assert!(ended.stderr.contains(word), "no `{word}` in {ended:?}");
    }
    ended.succeeds();
    assert!(!home.is_mounted() && is_alive(process));
    drop(other.stdin.take());
    other.wait().unwrap();
}

// S-75
#[test]
fn forced_umount_reports_changes_that_stay_in_the_journal() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    leave_one(&home, &server, "--deadline=1s");
    let ended = home.wirefs(&["umount", "-f", "mnt"]);
    assert!(ended.stderr.contains("1 change ") && ended.stderr.contains("wirefs recover"), "{ended:?}");
    ended.succeeds();
    assert_shown_until_delivered(&home, &server);
}

// S-75
#[test]
fn unmount_by_others_leaves_a_line_in_the_log_and_in_status() {
    for by_signal in [false, true] {
        let home = TestHome::new();
        let server = home.serve(&["--listen", &home.url()]);
        let process = leave_one(&home, &server, "--deadline=1s");
        if by_signal {
            kill_process(process, Signal::TERM).unwrap();
        } else {
            Finished::of(home.command("fusermount3").args(["-u", "mnt"])).succeeds();
        }
        wait_for("the process to end", || !is_alive(process));
        let log = home.log();
        assert!(log.contains("1 change ") && log.contains("wirefs recover"), "{log}");
        assert_shown_until_delivered(&home, &server);
    }
}

// S-75
#[test]
fn umount_without_a_journal_reports_lost_data() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--mode", "window", "--deadline", "1s", &home.url(), "mnt"]).succeeds();
    home.write("mnt/file", "");
    home.wirefs(&["sync", "mnt"]).succeeds();
    let mut file = fs::OpenOptions::new().append(true).open(home.path("mnt/file")).unwrap();
    server.kill(Signal::STOP);
    std::io::Write::write_all(&mut file, b"twelve bytes").unwrap();
    drop(file);
    home.wirefs(&["umount", "mnt"]).fails_with(&["12 B", "lost"]);
    server.kill(Signal::CONT);
}

// S-75
#[test]
fn umount_of_a_delivered_mount_says_nothing() {
    let home = TestHome::new();
    let _server = home.mounted();
    home.write("mnt/file", "text");
    let ended = home.wirefs(&["umount", "mnt"]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    ended.succeeds();
    assert_eq!(home.read("export/file"), "text");
}

// S-75
#[test]
fn status_shows_an_unmounted_process_that_still_sends() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    let process = leave_one(&home, &server, "--hard");
    Finished::of(home.command("fusermount3").args(["-u", "mnt"])).succeeds();
    wait_for("the status", || home.wirefs(&["status"]).succeeds().contains("UNMOUNTED, still sends"));
    server.kill(Signal::CONT);
    wait_for("the process to end", || !is_alive(process));
    assert!(home.path("export/new/inner").is_dir());
    assert!(!home.wirefs(&["status"]).succeeds().contains("NOT SENT"));
}
