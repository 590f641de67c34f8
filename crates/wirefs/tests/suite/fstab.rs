//! Calls by mount(8).

use crate::home::{Finished, TestHome, WIREFS, copy_program, need_root};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::unix::process::CommandExt;

/// An ordinary user.
const NOBODY: u32 = 65_534;

const OPTIONS: &str = "ro,noatime,_netdev,x-systemd.automount,mode=window=2s,deadline=3s";

fn check_and_unmount(home: &TestHome) {
    assert_eq!(home.read("mnt/a"), "hello\n");
    let status = home.status();
    assert_eq!(status["read_only"], true);
    assert_eq!(status["mode"], "window=2000ms");
    assert_eq!(status["deadline_ms"], 3000);
    home.wirefs(&["umount", "mnt"]).succeeds();
    assert!(!home.is_mounted());
}

#[test]
fn fstab_line_is_mounted_through_the_fuse_helper() {
    let home = TestHome::new();
    home.write("export/a", "hello\n");
    let _server = home.serve(&["--listen", &home.url()]);
    // mount(8) runs this for the type fuse.wirefs.
    let mut helper = home.command("/usr/sbin/mount.fuse3");
    helper.args([&home.url(), &home.text("mnt"), "-t", "fuse.wirefs", "-o", OPTIONS]);
    Finished::of(&mut helper).succeeds();
    check_and_unmount(&home);
}

#[test]
fn system_mount_and_umount_work() {
    let home = TestHome::new();
    home.write("export/a", "hello\n");
    let _server = home.serve(&["--listen", &home.url()]);
    if rustix::process::geteuid().is_root() {
        // mount(8) searches programs in the system's directories only; this names our program.
        let source = format!("{WIREFS}#{}", home.url());
        Finished::of(home.command("mount").args(["-t", "fuse", &source, "mnt", "-o", OPTIONS])).succeeds();
        check_and_unmount(&home);
    }
    // For users mount(8) needs a line in /etc/fstab, umount(8) does not.
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    let umount = if rustix::process::geteuid().is_root() { "umount" } else { "fusermount3" };
    let arguments: &[&str] = if umount == "umount" { &["mnt"] } else { &["-u", "mnt"] };
    Finished::of(home.command(umount).args(arguments)).succeeds();
    assert!(!home.is_mounted());
}

#[test]
fn program_called_as_mount_helper_mounts() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    let helper = home.text("mount.fuse.wirefs");
    std::os::unix::fs::symlink(WIREFS, &helper).unwrap();
    let arguments = [&home.url(), &home.text("mnt"), "-n", "-o", "rw,nodev,nosuid", "-t", "fuse.wirefs"];
    Finished::of(home.command(&helper).args(arguments).arg("-f")).succeeds();
    assert!(!home.is_mounted(), "-f of mount(8) means not to mount");
    Finished::of(home.command(&helper).args(arguments)).succeeds();
    assert!(home.is_mounted());
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn unknown_option_is_an_error() {
    let home = TestHome::new();
    home.wirefs(&[&home.url(), "mnt", "-o", "rw,colour=blue"]).fails_with(&["colour=blue", "next step"]);
}

// S-76
#[test]
fn remount_changes_read_only_and_keeps_other_flags() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "-o", "noatime,noexec,mode=lease", &home.url(), "mnt"]).succeeds();
    let flags = || {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mountpoint = format!(" {} ", home.text("mnt"));
        let (_, rest) = table.lines().find_map(|line| line.split_once(&mountpoint)).unwrap();
        rest.split(' ').next().unwrap().to_owned()
    };
    // As mount(8) does, which requests `dev` and `suid` in root's name.
    let remount = |how: &str| {
        let options = format!("{how},remount,dev,suid");
        home.wirefs(&[&home.url(), &home.text("mnt"), "-o", &options])
    };
    home.write("mnt/a", "one");
    home.wirefs(&["sync", "mnt"]).succeeds();
    let before = flags();
    server.kill(Signal::STOP);
    // Unsent when the mount becomes read-only; sent to the server nevertheless.
    home.write("mnt/a", "two");
    let open = std::fs::OpenOptions::new().write(true).open(home.path("mnt/a")).unwrap();
    remount("ro").fails_with(&["files are open for writing"]);
    drop(open);
    remount("ro").succeeds();
    assert_eq!(flags(), before.replacen("rw", "ro", 1));
    server.kill(Signal::CONT);
    let refused = std::fs::write(home.path("mnt/a"), "three").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
    assert_eq!(home.status()["read_only"], true);
    home.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(home.read("export/a"), "two");
    remount("rw").succeeds();
    assert_eq!(flags(), before);
    home.write("mnt/a", "four");
    assert_eq!(home.status()["read_only"], false);
    home.wirefs(&["umount", "mnt"]).succeeds();
    remount("ro").fails_with(&["no FUSE file system is mounted at"]);
}

// S-76
#[test]
fn only_root_may_remount() {
    need_root();
    let home = TestHome::new();
    let _server = home.mounted();
    // The user may not have access to the program's directory.
    copy_program(&home.path("program"));
    let mut command = home.command(home.path("program").to_str().unwrap());
    command.args(["mount", "-o", "remount,ro", &home.url(), &home.text("mnt")]).uid(NOBODY).gid(NOBODY);
    Finished::of(&mut command).fails_with(&["only root may remount"]);
}

/// A user that only the test's own files of accounts and mounts know.
const USER: u32 = 64_242;

/// Runs a script as root, in which /etc/passwd, /etc/fstab and /usr/sbin are the test's own. `$AS_USER` runs a command
/// as the test's user, with root's home directory in the environment.
fn run_on_a_machine_of_its_own(home: &TestHome, script: &str) -> String {
    let (dir, uid) = (home.text(""), USER);
    for name in ["user/mnt", "upper", "work"] {
        std::fs::create_dir_all(home.path(name)).unwrap();
    }
    for name in ["user", "user/mnt"] {
        std::os::unix::fs::chown(home.path(name), Some(uid), Some(uid)).unwrap();
    }
    home.write("passwd", &format!("root:x:0:0::/root:/bin/sh\ntest:x:{uid}:{uid}::{dir}user:/bin/sh\n"));
    home.write("upper/.keep", "");
    copy_program(&home.path("wirefs"));
    let prelude = format!(
        "set -eu; cd {dir}; mount -t tmpfs none work; mkdir work/upper work/work; \
         cp wirefs work/wirefs; ln -s {dir}work/wirefs work/upper/mount.wirefs; \
         mount -t overlay none -o lowerdir=/usr/sbin,upperdir=work/upper,workdir=work/work /usr/sbin; \
         touch fstab; mount --bind passwd /etc/passwd; mount --bind fstab /etc/fstab; \
         AS_USER='setpriv --reuid {uid} --regid {uid} --clear-groups env -u XDG_RUNTIME_DIR HOME=/root'; "
    );
    let mut command = home.command("unshare");
    command.args(["--mount", "sh", "-c", &format!("{prelude}{script}")]);
    Finished::of(&mut command).succeeds()
}

#[test]
fn files_of_a_user_with_the_home_of_root_are_in_the_users_home() {
    need_root();
    let home = TestHome::new();
    run_on_a_machine_of_its_own(&home, "$AS_USER work/wirefs identity");
    assert!(home.path("user/.config/wirefs/identity.pem").exists());
}

// S-76
#[test]
fn line_in_fstab_of_type_wirefs_is_mounted_and_remounted() {
    need_root();
    let home = TestHome::new();
    home.write("export/a", "hello\n");
    let server = home.serve(&["--listen", "tcp+plain://127.0.0.1:0"]);
    let source = format!("{}/", server.address().trim_end_matches('/'));
    home.write("fstab", &format!("{source} {} wirefs noauto,_netdev,mode=window 0 0\n", home.text("mnt")));
    let output = run_on_a_machine_of_its_own(
        &home,
        "mount mnt; cat mnt/a; mount -o remount,ro mnt; ! touch mnt/b 2>/dev/null; \
         mount -o remount,rw mnt; touch mnt/c; umount mnt",
    );
    assert_eq!(output, "hello\n");
    assert!(!home.path("export/b").exists());
}

#[test]
fn line_in_fstab_for_users_is_mounted_by_one() {
    need_root();
    let home = TestHome::new();
    home.write("export/a", "hello\n");
    let server = home.serve(&["--listen", "tcp+plain://127.0.0.1:0"]);
    let source = format!("{}/", server.address().trim_end_matches('/'));
    let mountpoint = home.text("user/mnt");
    home.write("fstab", &format!("{source} {mountpoint} wirefs noauto,user,_netdev 0 0\n"));
    let script = format!(
        "$AS_USER mount {mountpoint}; $AS_USER cat {mountpoint}/a; $AS_USER work/wirefs umount {mountpoint}"
    );
    assert_eq!(run_on_a_machine_of_its_own(&home, &script), "hello\n");
    assert!(home.path("user/.local/state/wirefs").exists());
}
