//! A power failure of the server's machine and a killed mount: changes that the disk lost are replayed from the
//! journal.
//!
//! ```text
//!   mount ──journal──┐          killed, both; the export is put back to what a disk may have kept
//!   server           └────────> another boot id, another mount
//! ```

use crate::home::{Server, TestHome, wait_for};
use crate::journal::{clear, exclusive, journals, umount};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::process::Stdio;

/// Makes changes that the server has and, as far as the mount knows, its disk does not. Kills both.
fn killed() -> TestHome {
    let mut pending = Vec::new();
    for _ in 0..10 {
        let home = TestHome::new();
        let server = home.serve(&["--listen", &home.url()]);
        exclusive(&home);
        home.wirefs(&["sync", "mnt"]).succeeds();
        let process = home.process();
        fs::create_dir(home.path("mnt/d")).unwrap();
        fs::write(home.path("mnt/d/kept"), "a name that the disk has").unwrap();
        fs::write(home.path("mnt/d/lost"), "nothing of which the disk has").unwrap();
        fs::rename(home.path("mnt/d/kept"), home.path("mnt/d/moved")).unwrap();
        wait_for("the answers", || home.status()["journal"]["unanswered_changes"] == 0);
        kill_process(process, Signal::KILL).unwrap();
        server.kill(Signal::KILL);
        drop(server);
        clear(&home);
        // On a slow machine the mount may have requested a sync of the server's disk.
        pending = journals(&home);
        if pending.iter().any(|journal| journal["changes"].as_u64().unwrap() >= 5) {
            return home;
        }
    }
    panic!("the server's disk always has some of it: {pending:?}");
}

/// The disk has the names up to the first file's. A server program reads the rest, and writes to it.
fn lose_names(home: &TestHome) {
    fs::rename(home.path("export/d/moved"), home.path("export/d/kept")).unwrap();
    home.write("export/d/kept", "somebody else's");
    fs::remove_file(home.path("export/d/lost")).unwrap();
}

/// Starts a server of a rebooted machine.
pub(crate) fn restarted_server(home: &TestHome) -> Server {
    // No living client has a lease.
    let _none = fs::remove_dir_all(home.path("home/.local/state/wirefs/exports"));
    home.write("boot_id", "00000000-0000-4000-8000-000000000001\n");
    // The server's mount namespace must not keep other mounts in use.
    let script = format!(
        "umount -a -l -t fuse.wirefs 2>none; mount --bind boot_id /proc/sys/kernel/random/boot_id && exec wirefs serve export --listen {}",
        home.url()
    );
    let mut command = home.command("unshare");
    command.args(["--mount", "sh", "-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped());
    Server::start(command)
}

// S-103
#[test]
fn changes_lost_by_the_servers_disk_are_replayed_from_a_dead_mounts_journal() {
    let home = killed();
    lose_names(&home);
    let _server = restarted_server(&home);
    let mounted = home.wirefs(&["mount", "--journal", &home.url(), "mnt"]);
    assert!(mounted.stderr.contains("have now been sent"), "{}", mounted.stderr);
    mounted.succeeds();
    assert_eq!(home.read("export/d/lost"), "nothing of which the disk has");
    assert!(!home.path("export/d/kept").exists());
    // Contents newer than the mount's knowledge are not overwritten.
    assert_eq!(home.read("export/d/moved"), "somebody else's");
    let list = home.wirefs(&["quarantine", "list"]).succeeds();
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(list.contains("write 24 bytes at 0") && list.contains("changed later"), "{list}");
    umount(&home);
    assert!(journals(&home).is_empty());
}

// S-103
#[test]
fn disk_without_losses_is_unchanged() {
    let home = killed();
    let _server = restarted_server(&home);
    let output = home.wirefs(&["recover"]).succeeds();
    assert!(output.contains("have now been sent"), "{output}");
    assert_eq!(home.read("export/d/moved"), "a name that the disk has");
    assert_eq!(home.read("export/d/lost"), "nothing of which the disk has");
    assert_eq!(home.wirefs(&["quarantine", "list", "--json"]).succeeds().trim(), "[]");
}

// S-103
#[test]
fn nothing_is_replayed_onto_an_unexplained_state() {
    let home = killed();
    lose_names(&home);
    home.write("export/d/lost", "somebody else's");
    let _server = restarted_server(&home);
    let mounted = home.wirefs(&["mount", "--journal", &home.url(), "mnt"]);
    assert!(mounted.stderr.contains("NOTHING of it was carried out"), "{}", mounted.stderr);
    mounted.succeeds();
    assert_eq!(home.read("export/d/lost"), "somebody else's");
    assert_eq!(home.read("export/d/kept"), "somebody else's");
    let list = home.wirefs(&["quarantine", "list"]).succeeds();
    assert!(list.contains("write 29 bytes at 0") && list.contains("started again"), "{list}");
    umount(&home);
}
