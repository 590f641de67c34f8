//! As mount(8) calls it.

use crate::world::{Ran, WIREFS, World, copy_program};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::unix::process::CommandExt;

/// An ordinary user.
const NOBODY: u32 = 65_534;

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

// S-169
#[test]
fn a_mount_becomes_read_only_and_writable_again_with_the_flags_that_it_has() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", "-o", "noatime,noexec,mode=lease", &world.url(), "mnt"]).succeeds();
    let flags = || {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mountpoint = format!(" {} ", world.text("mnt"));
        let (_, rest) = table.lines().find_map(|line| line.split_once(&mountpoint)).unwrap();
        rest.split(' ').next().unwrap().to_owned()
    };
    // As mount(8) has it done, which asks for `dev` and `suid` in root's name.
    let remount = |how: &str| {
        let options = format!("{how},remount,dev,suid");
        world.wirefs(&[&world.url(), &world.text("mnt"), "-o", &options])
    };
    world.write("mnt/a", "one");
    world.wirefs(&["sync", "mnt"]).succeeds();
    let before = flags();
    server.kill(Signal::STOP);
    // Unsent when the mount becomes read-only: it goes to the server all the same.
    world.write("mnt/a", "two");
    let open = std::fs::OpenOptions::new().write(true).open(world.path("mnt/a")).unwrap();
    remount("ro").fails_with(&["files are open for writing"]);
    drop(open);
    remount("ro").succeeds();
    assert_eq!(flags(), before.replacen("rw", "ro", 1));
    server.kill(Signal::CONT);
    let refused = std::fs::write(world.path("mnt/a"), "three").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    assert_eq!(world.status()["read_only"], true);
    world.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(world.read("export/a"), "two");
    remount("rw").succeeds();
    assert_eq!(flags(), before);
    world.write("mnt/a", "four");
    assert_eq!(world.status()["read_only"], false);
    world.wirefs(&["umount", "mnt"]).succeeds();
    remount("ro").fails_with(&["no FUSE file system is mounted at"]);
}

// S-169
#[test]
fn only_root_may_remount() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let _server = world.mounted();
    // Where the program lies that user may not look.
    copy_program(&world.path("program"));
    let mut command = world.command(world.path("program").to_str().unwrap());
    command.args(["mount", "-o", "remount,ro", &world.url(), &world.text("mnt")]).uid(NOBODY).gid(NOBODY);
    Ran::of(&mut command).fails_with(&["only root may remount"]);
}
