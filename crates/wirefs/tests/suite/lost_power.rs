//! The server's machine loses power, with a mount that dies beside it: what its disk did not have comes out of the journal.
//!
//! ```text
//!   mount ──journal──┐          killed, both; the export is put back to what a disk may have kept
//!   server           └────────> another boot id, another mount
//! ```

use crate::journal::{alone, clear, journals, umount};
use crate::world::{Server, World, wait_for};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::process::Stdio;

/// Changes that the server has and its disk, as far as the mount knows, has not. Both are killed.
fn killed() -> World {
    let mut left = Vec::new();
    for _ in 0..10 {
        let world = World::new();
        let server = world.serve(&["--listen", &world.url()]);
        alone(&world);
        world.wirefs(&["sync", "mnt"]).succeeds();
        let process = world.process();
        fs::create_dir(world.path("mnt/d")).unwrap();
        fs::write(world.path("mnt/d/kept"), "a name that the disk has").unwrap();
        fs::write(world.path("mnt/d/lost"), "nothing of which the disk has").unwrap();
        fs::rename(world.path("mnt/d/kept"), world.path("mnt/d/moved")).unwrap();
        wait_for("the answers", || world.status()["journal"]["unanswered_changes"] == 0);
        kill_process(process, Signal::KILL).unwrap();
        server.kill(Signal::KILL);
        drop(server);
        clear(&world);
        // Where this took long, the mount has had the server's disk asked for.
        left = journals(&world);
        if left.iter().any(|journal| journal["changes"].as_u64().unwrap() >= 5) {
            return world;
        }
    }
    panic!("the server's disk always has some of it: {left:?}");
}

/// The disk has the names up to the first file's. Somebody looks at what is left of that, and writes to it.
fn lose(world: &World) {
    fs::rename(world.path("export/d/moved"), world.path("export/d/kept")).unwrap();
    world.write("export/d/kept", "somebody else's");
    fs::remove_file(world.path("export/d/lost")).unwrap();
}

/// A server of a machine that was started again.
pub(crate) fn started_again(world: &World) -> Server {
    // Nobody lives who was promised anything.
    let _none = fs::remove_dir_all(world.path("home/.local/state/wirefs/exports"));
    world.write("boot_id", "00000000-0000-4000-8000-000000000001\n");
    // Mounts that live, also those of others, are not to be kept by the name space of the server.
    let script = format!(
        "umount -a -l -t fuse.wirefs 2>none; mount --bind boot_id /proc/sys/kernel/random/boot_id && exec wirefs serve export --listen {}",
        world.url()
    );
    let mut command = world.command("unshare");
    command.args(["--mount", "sh", "-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped());
    Server::start(command)
}

// S-77
#[test]
fn what_the_servers_disk_lost_comes_out_of_the_journal_of_a_mount_that_died() {
    let world = killed();
    lose(&world);
    let _server = started_again(&world);
    let mounted = world.wirefs(&["mount", "--journal", &world.url(), "mnt"]);
    assert!(mounted.stderr.contains("were brought to the server"), "{}", mounted.stderr);
    mounted.succeeds();
    assert_eq!(world.read("export/d/lost"), "nothing of which the disk has");
    assert!(!world.path("export/d/kept").exists());
    // What is newer than all that the mount ever heard of is not overwritten.
    assert_eq!(world.read("export/d/moved"), "somebody else's");
    let list = world.wirefs(&["quarantine", "list"]).succeeds();
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(list.contains("write 24 bytes at 0") && list.contains("changed later"), "{list}");
    umount(&world);
    assert!(journals(&world).is_empty());
}

// S-77
#[test]
fn a_disk_that_lost_nothing_is_left_as_it_is() {
    let world = killed();
    let _server = started_again(&world);
    let said = world.wirefs(&["recover"]).succeeds();
    assert!(said.contains("were brought to the server"), "{said}");
    assert_eq!(world.read("export/d/moved"), "a name that the disk has");
    assert_eq!(world.read("export/d/lost"), "nothing of which the disk has");
    assert_eq!(world.wirefs(&["quarantine", "list", "--json"]).succeeds().trim(), "[]");
}

// S-77
#[test]
fn nothing_is_sent_where_none_of_the_changes_explains_what_is_there() {
    let world = killed();
    lose(&world);
    world.write("export/d/lost", "somebody else's");
    let _server = started_again(&world);
    let mounted = world.wirefs(&["mount", "--journal", &world.url(), "mnt"]);
    assert!(mounted.stderr.contains("NOTHING of it was carried out"), "{}", mounted.stderr);
    mounted.succeeds();
    assert_eq!(world.read("export/d/lost"), "somebody else's");
    assert_eq!(world.read("export/d/kept"), "somebody else's");
    let list = world.wirefs(&["quarantine", "list"]).succeeds();
    assert!(list.contains("write 29 bytes at 0") && list.contains("started again"), "{list}");
    umount(&world);
}
