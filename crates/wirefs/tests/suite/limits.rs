//! Limits of a mount's connections, set while it is mounted.

use crate::home::{TestHome, wait_for};
use std::process::{Child, Stdio};

/// Waits for limits must outlast a machine that stands still.
const DEADLINE: &str = "10m";

/// A program that reads a file which the mount does not have.
fn reader(home: &TestHome, path: &str) -> Child {
    let mut command = home.command("cat");
    command.arg(path).stdout(Stdio::piped()).spawn().unwrap()
}

fn await_waiting_call(home: &TestHome) {
    wait_for("a call that waits", || home.status()["calls_waiting"].as_u64() >= Some(1));
}

// S-155
#[test]
fn paused_mount_has_no_connection_until_it_is_resumed() {
    let home = TestHome::new();
    home.write("export/a", "text");
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--deadline", DEADLINE, &home.url(), "mnt"]).succeeds();
    home.wirefs(&["pause", "mnt"]).succeeds();
    wait_for("the end of the connection", || home.status()["connected"] == false);
    assert_eq!(home.status()["limits"]["paused"], true);
    wait_for("the reason", || home.wirefs(&["status", "mnt"]).succeeds().contains("paused; `wirefs resume`"));
    assert!(home.wirefs(&["status", "mnt"]).succeeds().contains("PAUSED for "));
    let reader = reader(&home, "mnt/a");
    await_waiting_call(&home);
    home.wirefs(&["resume", "mnt"]).succeeds();
    assert_eq!(reader.wait_with_output().unwrap().stdout, b"text");
    let status = home.status();
    assert_eq!((&status["connected"], &status["limits"]["paused"]), (&true.into(), &false.into()));
}

// S-156
#[test]
fn limit_holds_until_it_is_lifted() {
    let home = TestHome::new();
    let contents = "0123456789abcdef".repeat(64 * 1024);
    home.write("export/large", &contents);
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--deadline", DEADLINE, "--up", "2M", &home.url(), "mnt"]).succeeds();
    assert_eq!(home.status()["limits"]["up"], 2 << 20);
    home.wirefs(&["set", "mnt", "up=off", "down=1"]).succeeds();
    let limits = home.status()["limits"].clone();
    assert_eq!((&limits["up"], &limits["down"]), (&serde_json::Value::Null, &1.into()));
    let reader = reader(&home, "mnt/large");
    await_waiting_call(&home);
    let shown = home.wirefs(&["status", "mnt"]).succeeds();
    assert!(shown.contains("limited to down 1 B/s"), "{shown}");
    home.wirefs(&["set", "mnt", "down=off"]).succeeds();
    assert_eq!(reader.wait_with_output().unwrap().stdout, contents.as_bytes());
}

#[test]
fn mount_without_connections_has_no_limits() {
    let home = TestHome::new();
    home.wirefs(&["mount", "--up", "1M", "blocks+memory:", "mnt"]).fails_with(&["--up and --down limit"]);
    home.wirefs(&["mount", "blocks+memory:", "mnt"]).succeeds();
    home.wirefs(&["pause", "mnt"]).fails_with(&["only mounts of a wirefs server have limits"]);
}
