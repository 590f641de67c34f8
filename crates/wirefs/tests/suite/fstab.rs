//! As mount(8) calls it.

use crate::world::{Ran, WIREFS, World};

const OPTIONS: &str = "ro,noatime,_netdev,x-systemd.automount,mode=window=2s,deadline=3s";

fn check_and_unmount(world: &World) {
    assert_eq!(world.read("mnt/a"), "hello\n");
    let status = world.status();
    assert_eq!(status["read_only"], true);
    assert_eq!(status["mode"], "window=2000ms");
    assert_eq!(status["deadline_ms"], 3000);
    world.wirefs(&["umount", "mnt"]).succeeds();
    assert!(!world.is_mounted());
}

#[test]
fn a_line_of_fstab_is_mounted_through_the_helper_of_fuse() {
    let world = World::new();
    world.write("export/a", "hello\n");
    let _server = world.serve(&["--listen", &world.url()]);
    // This is what mount(8) runs for the type fuse.wirefs.
    let mut helper = world.command("/usr/sbin/mount.fuse3");
    helper.args([&world.url(), &world.text("mnt"), "-t", "fuse.wirefs", "-o", OPTIONS]);
    Ran::of(&mut helper).succeeds();
    check_and_unmount(&world);
}

#[test]
fn mount_and_umount_of_the_system_work() {
    let world = World::new();
    world.write("export/a", "hello\n");
    let _server = world.serve(&["--listen", &world.url()]);
    if rustix::process::geteuid().is_root() {
        // mount(8) looks for programs in the system's directories only; this names ours, wherever it is.
        let source = format!("{WIREFS}#{}", world.url());
        Ran::of(world.command("mount").args(["-t", "fuse", &source, "mnt", "-o", OPTIONS])).succeeds();
        check_and_unmount(&world);
    }
    // For a user mount(8) needs a line in /etc/fstab, umount(8) does not.
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    let umount = if rustix::process::geteuid().is_root() { "umount" } else { "fusermount3" };
    let arguments: &[&str] = if umount == "umount" { &["mnt"] } else { &["-u", "mnt"] };
    Ran::of(world.command(umount).args(arguments)).succeeds();
    assert!(!world.is_mounted());
}

#[test]
fn a_program_called_as_mount_helper_mounts() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    let helper = world.text("mount.fuse.wirefs");
    std::os::unix::fs::symlink(WIREFS, &helper).unwrap();
    let arguments = [&world.url(), &world.text("mnt"), "-n", "-o", "rw,nodev,nosuid", "-t", "fuse.wirefs"];
    Ran::of(world.command(&helper).args(arguments).arg("-f")).succeeds();
    assert!(!world.is_mounted(), "-f of mount(8) means not to mount");
    Ran::of(world.command(&helper).args(arguments)).succeeds();
    assert!(world.is_mounted());
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn an_option_that_nobody_knows_is_an_error() {
    let world = World::new();
    world.wirefs(&[&world.url(), "mnt", "-o", "rw,colour=blue"]).fails_with(&["colour=blue", "next step"]);
}
