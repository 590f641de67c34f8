//! Mounts whose server or process is dead.

use crate::world::{World, is_alive, wait_for};
use rustix::process::{Signal, kill_process};

#[test]
fn a_mount_whose_server_was_killed_is_taken_away_by_force() {
    let world = World::new();
    world.write("export/a", "hello\n");
    let server = world.mounted();
    assert_eq!(world.read("mnt/a"), "hello\n");
    let process = world.process();
    server.kill(Signal::KILL);
    server.end();
    wait_for("the mount to notice", || world.status()["connected"] == false);
    world.wirefs(&["umount", "-f", "mnt"]).succeeds();
    assert!(!world.is_mounted());
    wait_for("the process to end", || !is_alive(process));
}

#[test]
fn a_mount_in_use_is_kept_and_by_force_taken_away() {
    let world = World::new();
    world.write("export/a", "hello\n");
    let _server = world.mounted();
    let process = world.process();
    let file = std::fs::File::open(world.path("mnt/a")).unwrap();
    world.wirefs(&["umount", "mnt"]).fails_with(&["in use", "umount -f"]);
    assert!(world.is_mounted());
    world.wirefs(&["umount", "-f", "mnt"]).succeeds();
    assert!(!world.is_mounted());
    wait_for("the process to end", || !is_alive(process));
    drop(file);
}

#[test]
fn a_mount_whose_process_was_killed_is_told_and_taken_away_by_force() {
    let world = World::new();
    let _server = world.mounted();
    let process = world.process();
    kill_process(process, Signal::KILL).unwrap();
    // Its threads end one after the other; the kernel cuts the connection with the last.
    wait_for("the mount to be dead", || {
        let error = std::fs::read_dir(world.path("mnt")).err();
        error.and_then(|error| rustix::io::Errno::from_io_error(&error)) == Some(rustix::io::Errno::NOTCONN)
    });
    world.wirefs(&["status", "mnt"]).fails_with(&["no process", "umount -f"]);
    world.wirefs(&["mount", &world.url(), "mnt"]).fails_with(&["wirefs umount -f mnt"]);
    world.wirefs(&["umount", "-f", "mnt"]).succeeds();
    assert!(!world.is_mounted());
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    world.wirefs(&["umount", "mnt"]).succeeds();
}
