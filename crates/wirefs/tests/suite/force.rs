//! Mounts whose server or process is dead.

use crate::home::{TestHome, is_alive, wait_for};
use rustix::process::{Signal, kill_process};

#[test]
fn mount_of_a_killed_server_is_unmounted_by_force() {
    let home = TestHome::new();
    home.write("export/a", "hello\n");
    let server = home.mounted();
    assert_eq!(home.read("mnt/a"), "hello\n");
    let process = home.process();
    server.kill(Signal::KILL);
    server.end();
    wait_for("the mount to notice", || home.status()["connected"] == false);
    home.wirefs(&["umount", "-f", "mnt"]).succeeds();
    assert!(!home.is_mounted());
    wait_for("the process to end", || !is_alive(process));
}

#[test]
fn mount_in_use_is_unmounted_only_by_force() {
    let home = TestHome::new();
    home.write("export/a", "hello\n");
    let _server = home.mounted();
    let process = home.process();
    let file = std::fs::File::open(home.path("mnt/a")).unwrap();
    home.wirefs(&["umount", "mnt"]).fails_with(&["in use", "umount -f"]);
    assert!(home.is_mounted());
    home.wirefs(&["umount", "-f", "mnt"]).succeeds();
    assert!(!home.is_mounted());
    wait_for("the process to end", || !is_alive(process));
    drop(file);
}

#[test]
fn mount_of_a_killed_process_is_reported_and_unmounted_by_force() {
    let home = TestHome::new();
    let _server = home.mounted();
    let process = home.process();
    kill_process(process, Signal::KILL).unwrap();
    // Its threads end in sequence; the kernel closes the connection with the last.
    wait_for("the mount to be dead", || {
        let error = std::fs::read_dir(home.path("mnt")).err();
        error.and_then(|error| rustix::io::Errno::from_io_error(&error)) == Some(rustix::io::Errno::NOTCONN)
    });
    home.wirefs(&["status", "mnt"]).fails_with(&["no process", "umount -f"]);
    home.wirefs(&["mount", &home.url(), "mnt"]).fails_with(&["wirefs umount -f mnt"]);
    home.wirefs(&["umount", "-f", "mnt"]).succeeds();
    assert!(!home.is_mounted());
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    home.wirefs(&["umount", "mnt"]).succeeds();
}
