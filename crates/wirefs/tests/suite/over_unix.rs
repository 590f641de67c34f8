//! A server and a mount on one machine.

use crate::world::{Ran, WIREFS, World, wait_for};
use rustix::process::Signal;
use std::process::Stdio;

#[test]
fn a_mounted_directory_is_listed_read_written_and_unmounted() {
    let world = World::new();
    world.write("export/read.txt", "from the server\n");
    let _server = world.mounted();
    assert_eq!(Ran::of(world.command("ls").arg("mnt")).succeeds(), "read.txt\n");
    assert_eq!(Ran::of(world.command("cat").arg("mnt/read.txt")).succeeds(), "from the server\n");
    world.write("mnt/deep/written.txt", "from the client\n");
    world.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(world.read("export/deep/written.txt"), "from the client\n");
    world.wirefs(&["umount", "mnt"]).succeeds();
    assert!(!world.is_mounted());
}

#[test]
fn the_server_says_how_to_mount_it_and_ends_cleanly_on_sigterm() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    let expected = format!(
        "serving {} on {1}; mount it with: wirefs mount {1} MNT\n",
        world.text("export"),
        world.url()
    );
    assert_eq!(server.line, expected);
    assert!(world.path("socket").exists());
    server.kill(Signal::TERM);
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stderr, "");
    assert!(!world.path("socket").exists());
}

// S-29
#[test]
fn a_server_with_clients_ends_on_sigterm_and_a_new_one_takes_over() {
    let world = World::new();
    world.write("export/a", "kept\n");
    let server = world.mounted();
    assert_eq!(world.read("mnt/a"), "kept\n");
    server.kill(Signal::TERM);
    assert_eq!(server.end().code, Some(0));
    let _next = world.serve(&["--listen", &world.url()]);
    wait_for("the mount to connect again", || world.status()["connected"] == true);
    world.write("mnt/b", "new\n");
    world.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(world.read("export/b"), "new\n");
    world.wirefs(&["umount", "mnt"]).succeeds();
}

// S-20
#[test]
fn a_read_only_export_refuses_changes() {
    let world = World::new();
    world.write("export/a", "kept\n");
    let _server = world.serve(&["--listen", &world.url(), "--read-only"]);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    let error = std::fs::write(world.path("mnt/b"), "new").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    assert_eq!(world.status()["read_only"], true);
    assert_eq!(world.read("mnt/a"), "kept\n");
}

#[test]
fn a_mount_in_the_foreground_ends_with_sigterm() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    let mut command = world.command(WIREFS);
    command
        .args(["mount", "--foreground", &world.url(), "mnt"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // It says one line once it is mounted, as a server does.
    let mount = crate::world::Server::start(command);
    assert_eq!(mount.line, format!("mounted {} on mnt\n", world.url()));
    assert!(world.is_mounted());
    mount.kill(Signal::TERM);
    let ended = mount.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!world.is_mounted());
}

#[test]
fn status_has_the_promised_fields() {
    let world = World::new();
    world.write("export/a", "some data\n");
    let _server = world.mounted();
    assert_eq!(world.read("mnt/a"), "some data\n");
    let status = world.status();
    assert_eq!(status["peer"]["address"], world.url());
    assert_eq!(status["carrier"], "unix");
    assert_eq!(status["mode"], "lease");
    assert_eq!(status["mountpoint"], world.text("mnt"));
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
    ] {
        assert!(status.get(field).is_some(), "no {field} in {status}");
    }
    for field in ["name_hits", "name_misses", "data_hits", "data_misses", "bytes", "bytes_max"] {
        assert!(status["cache"][field].is_u64(), "no cache.{field} in {status}");
    }
    let all: serde_json::Value =
        serde_json::from_str(&world.wirefs(&["status", "--json"]).succeeds()).unwrap();
    assert!(all.as_array().unwrap().iter().any(|mount| mount["mountpoint"] == world.text("mnt")));
    let table = world.wirefs(&["status", "mnt"]).succeeds();
    for word in ["peer", "carrier", "RTT", "mode", "requests", "in flight", "bytes", "cache"] {
        assert!(table.contains(word), "no {word} in {table}");
    }
}
