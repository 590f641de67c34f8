//! A server and a mount on one machine.

use crate::home::{Finished, TestHome, WIREFS, wait_for};
use rustix::process::Signal;
use std::process::Stdio;

#[test]
fn a_mounted_directory_is_listed_read_written_and_unmounted() {
    let home = TestHome::new();
    home.write("export/read.txt", "from the server\n");
    let _server = home.mounted();
    assert_eq!(Finished::of(home.command("ls").arg("mnt")).succeeds(), "read.txt\n");
    assert_eq!(Finished::of(home.command("cat").arg("mnt/read.txt")).succeeds(), "from the server\n");
    home.write("mnt/deep/written.txt", "from the client\n");
    home.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(home.read("export/deep/written.txt"), "from the client\n");
    home.wirefs(&["umount", "mnt"]).succeeds();
    assert!(!home.is_mounted());
}

#[test]
fn server_prints_the_mount_command_and_ends_cleanly_on_sigterm() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    let expected =
        format!("serving {} on {1}; mount it with: wirefs mount {1} MNT\n", home.text("export"), home.url());
    assert_eq!(server.line, expected);
    assert!(home.path("socket").exists());
    server.kill(Signal::TERM);
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stderr, "");
    assert!(!home.path("socket").exists());
}

// S-85
#[test]
fn a_server_with_clients_ends_on_sigterm_and_a_new_one_takes_over() {
    let home = TestHome::new();
    home.write("export/a", "kept\n");
    let server = home.mounted();
    assert_eq!(home.read("mnt/a"), "kept\n");
    server.kill(Signal::TERM);
    assert_eq!(server.end().code, Some(0));
    let _next = home.serve(&["--listen", &home.url()]);
    wait_for("the mount to connect again", || home.status()["connected"] == true);
    home.write("mnt/b", "new\n");
    home.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(home.read("export/b"), "new\n");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

// S-63
#[test]
fn a_read_only_export_refuses_changes() {
    let home = TestHome::new();
    home.write("export/a", "kept\n");
    let _server = home.serve(&["--listen", &home.url(), "--read-only"]);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    let error = std::fs::write(home.path("mnt/b"), "new").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    assert_eq!(home.status()["read_only"], true);
    assert_eq!(home.read("mnt/a"), "kept\n");
}

#[test]
fn a_mount_in_the_foreground_ends_with_sigterm() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    let mut command = home.command(WIREFS);
    command.args(["mount", "--foreground", &home.url(), "mnt"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    // It prints one line when it is mounted, as a server does.
    let mount = crate::home::Server::start(command);
    assert_eq!(mount.line, format!("mounted {} on mnt\n", home.url()));
    assert!(home.is_mounted());
    mount.kill(Signal::TERM);
    let ended = mount.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!home.is_mounted());
}

#[test]
fn status_has_the_promised_fields() {
    let home = TestHome::new();
    home.write("export/a", "some data\n");
    let _server = home.mounted();
    assert_eq!(home.read("mnt/a"), "some data\n");
    let status = home.status();
    assert_eq!(status["peer"]["address"], home.url());
    assert_eq!(status["carrier"], "unix");
    assert_eq!(status["mode"], "lease");
    assert_eq!(status["mountpoint"], home.text("mnt"));
    assert_eq!(status["connected"], true);
    assert!(status["requests"]["Get"].as_u64().unwrap() > 0, "{status}");
    assert!(status["bytes_in"].as_u64().unwrap() > 0, "{status}");
    for field in [
        "rtt_us",
        "in_flight",
        "bytes_out",
        "cache",
        "prefetch",
        "leases",
        "unacknowledged_bytes",
        "calls_waiting",
        "deadline_ms",
        "schema",
    ] {
        assert!(status.get(field).is_some(), "no {field} in {status}");
    }
    for field in ["name_hits", "name_misses", "data_hits", "data_misses", "bytes", "bytes_max"] {
        assert!(status["cache"][field].is_u64(), "no cache.{field} in {status}");
    }
    let all: serde_json::Value =
        serde_json::from_str(&home.wirefs(&["status", "--json"]).succeeds()).unwrap();
    assert!(all.as_array().unwrap().iter().any(|mount| mount["mountpoint"] == home.text("mnt")));
    let table = home.wirefs(&["status", "-v", "mnt"]).succeeds();
    for word in ["peer", "carrier", "RTT", "mode", "requests", "in flight", "bytes", "cache"] {
        assert!(table.contains(word), "no {word} in {table}");
    }
    // S-179
    let summary = home.wirefs(&["status", "mnt"]).succeeds();
    let names: Vec<&str> =
        summary.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["connection", "saved", "speed", "answered", "trouble"], "{summary}");
    assert!(table.starts_with(summary.lines().next().unwrap()), "{table}");
}
