//! Consistency of a mount while others change the same tree; the ids are those of docs/SEMANTICS.md.

use crate::home::{Finished, SecondMount, Server, TestHome, copy_program, wait_for};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Signal, kill_process};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::Stdio;

/// The user of an ordinary user's server.
const NOBODY: u32 = 65_534;

/// A small tmpfs, unmounted on drop.
pub(crate) struct Tmpfs(PathBuf);

impl Tmpfs {
    pub(crate) fn mount(dir: PathBuf, options: &std::ffi::CStr) -> Tmpfs {
        rustix::mount::mount("wirefs-test", &dir, "tmpfs", MountFlags::empty(), options).unwrap();
        Tmpfs(dir)
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _gone = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

fn edit(home: &TestHome, name: &str) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(home.path(name)).unwrap()
}

// S-1
#[test]
fn program_sees_changes_of_its_own_mount_at_once() {
    let home = TestHome::new();
    let _server = home.mounted();
    let file = edit(&home, "mnt/a");
    for round in 0..50_u64 {
        file.write_all_at(&[round as u8; 4096], round * 4096).unwrap();
        assert_eq!(std::fs::metadata(home.path("mnt/a")).unwrap().len(), (round + 1) * 4096);
        let mut last = [0; 1];
        edit(&home, "mnt/a").read_exact_at(&mut last, round * 4096 + 4095).unwrap();
        assert_eq!(last, [round as u8]);
    }
    std::fs::rename(home.path("mnt/a"), home.path("mnt/b")).unwrap();
    let names: Vec<_> =
        std::fs::read_dir(home.path("mnt")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["b"]);
    assert!(!home.path("mnt/a").exists());
}

// S-8
#[test]
fn other_mount_sees_changes_after_the_window() {
    let home = TestHome::new();
    home.write("export/a", "old");
    let _server = home.mounted();
    let _second = SecondMount::mount(&home, "window");
    assert_eq!(home.read("other/a"), "old");
    assert!(!home.path("other/new").exists());
    home.write("mnt/a", "newer");
    home.write("mnt/new", "here");
    std::fs::create_dir(home.path("mnt/dir")).unwrap();
    wait_for("the new contents", || home.read("other/a") == "newer");
    wait_for("the new name", || home.path("other/new").exists());
    wait_for("the new directory", || home.path("other/dir").is_dir());
    assert_eq!(home.read("other/new"), "here");
    std::fs::remove_file(home.path("other/a")).unwrap();
    wait_for("the removal", || !home.path("mnt/a").exists());
}

// S-9
#[test]
fn in_strict_mode_a_finished_change_is_visible_at_once() {
    let home = TestHome::new();
    let _server = home.mounted();
    let _second = SecondMount::mount(&home, "strict");
    for round in 0..20 {
        let (text, name) = (format!("round {round}"), format!("new{round}"));
        assert!(!home.path("other").join(&name).exists());
        home.write("mnt/a", &text);
        home.write(&format!("mnt/{name}"), "");
        assert_eq!(home.read("other/a"), text);
        assert_eq!(std::fs::metadata(home.path("other/a")).unwrap().len(), text.len() as u64);
        assert!(home.path("other").join(&name).exists());
    }
}

// S-11
#[test]
fn in_strict_mode_a_write_that_returned_is_at_the_server() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    let _second = SecondMount::mount(&home, "strict");
    let mut file = edit(&home, "other/a");
    for line in ["one\n", "two\n", "three\n"] {
        let before = home.read("export/a");
        file.write_all(line.as_bytes()).unwrap();
        assert_eq!(home.read("export/a"), before + line);
    }
}

// S-12
#[test]
fn without_a_journal_a_closed_file_is_at_the_server() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--no-journal", &home.url(), "mnt"]).succeeds();
    for round in 0..20 {
        let data = vec![round; 300_000];
        std::fs::write(home.path("mnt/a"), &data).unwrap();
        assert!(std::fs::read(home.path("export/a")).unwrap() == data, "round {round}");
    }
}

// S-12
#[test]
fn later_mount_sees_a_closed_file() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--journal", &home.url(), "mnt"]).succeeds();
    for round in 0..50u8 {
        std::fs::write(home.path(&format!("mnt/{round}")), vec![round; 30_000]).unwrap();
    }
    let _second = SecondMount::mount(&home, "lease");
    for round in 0..50u8 {
        let data = std::fs::read(home.path(&format!("other/{round}"))).unwrap();
        assert!(data == vec![round; 30_000], "round {round}");
    }
}

// S-14
#[test]
fn attributes_of_an_unconfirmed_file_do_not_change() {
    use std::os::unix::fs::MetadataExt;
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--journal", &home.url(), "mnt"]).succeeds();
    let stat_of = |name: &str| {
        let stat = std::fs::metadata(home.path(name)).unwrap();
        (stat.ino(), stat.mtime(), stat.mtime_nsec(), stat.ctime_nsec())
    };
    std::fs::create_dir(home.path("mnt/d")).unwrap();
    std::fs::write(home.path("mnt/d/f"), "hello").unwrap();
    let before = [stat_of("mnt/d"), stat_of("mnt/d/f")];
    home.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(home.read("export/d/f"), "hello");
    assert_eq!([stat_of("mnt/d"), stat_of("mnt/d/f")], before);
}

// S-18
#[test]
fn synced_open_file_is_at_the_server() {
    let home = TestHome::new();
    let _server = home.mounted();
    let mut file = edit(&home, "mnt/a");
    let data = vec![7; 3_000_000];
    file.write_all(&data).unwrap();
    file.sync_all().unwrap();
    assert!(std::fs::read(home.path("export/a")).unwrap() == data);
}

// S-40
#[test]
fn lock_holder_sees_the_last_holders_writes() {
    let home = TestHome::new();
    home.write("export/a", "00000000");
    let _server = home.mounted();
    let _second = SecondMount::mount(&home, "window");
    let files = [edit(&home, "mnt/a"), edit(&home, "other/a")];
    let refused = |file: &File| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
    for round in 0..40_u64 {
        let (mine, theirs) = (&files[round as usize % 2], &files[(round as usize + 1) % 2]);
        rustix::fs::flock(mine, FlockOperation::LockExclusive).unwrap();
        assert_eq!(refused(theirs), Err(Errno::WOULDBLOCK));
        let mut count = [0; 8];
        mine.read_exact_at(&mut count, 0).unwrap();
        assert_eq!(count, *format!("{round:08}").as_bytes());
        mine.write_all_at(format!("{:08}", round + 1).as_bytes(), 0).unwrap();
        rustix::fs::flock(mine, FlockOperation::Unlock).unwrap();
    }
}

// S-48
#[test]
fn appends_of_two_mounts_are_atomic() {
    let home = TestHome::new();
    home.write("export/log", "");
    let _server = home.mounted();
    let _second = SecondMount::mount(&home, "window");
    std::thread::scope(|scope| {
        for mount in ["mnt", "other"] {
            let path = home.path(mount).join("log");
            scope.spawn(move || {
                let mut log = OpenOptions::new().append(true).open(path).unwrap();
                for number in 0..300 {
                    log.write_all(format!("{mount} {number}\n").as_bytes()).unwrap();
                }
            });
        }
    });
    let log = home.read("export/log");
    for mount in ["mnt", "other"] {
        let lines = log.lines().filter(|line| line.starts_with(mount));
        let expected: Vec<String> = (0..300).map(|number| format!("{mount} {number}")).collect();
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }
    assert_eq!(log.lines().count(), 600);
}

// S-54
#[test]
fn open_file_outlives_its_name() {
    let home = TestHome::new();
    home.write("export/a", "still here");
    let _server = home.mounted();
    let mut file = edit(&home, "mnt/a");
    std::fs::remove_file(home.path("mnt/a")).unwrap();
    home.wirefs(&["sync", "mnt"]).succeeds();
    assert!(!home.path("export/a").exists());
    home.write("mnt/a", "another");
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still here");
    file.write_all(b", and longer").unwrap();
    file.sync_all().unwrap();
    assert_eq!((file.metadata().unwrap().len(), file.metadata().unwrap().nlink()), (22, 0));
    home.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(home.read("export/a"), "another");
}

// S-62
#[test]
fn files_of_an_ordinary_users_server_belong_to_the_mounting_user() {
    let home = TestHome::new();
    for name in [".", "home", "run", "export"] {
        std::os::unix::fs::chown(home.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    // That user may not have access to the program's directory.
    copy_program(&home.path("program"));
    let mut command = home.command(home.path("program").to_str().unwrap());
    command.args(["serve", "export", "--listen", &home.url()]);
    command.uid(NOBODY).gid(NOBODY).stdout(Stdio::piped()).stderr(Stdio::piped());
    let _server = Server::start(command);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    home.write("mnt/a", "text");
    let (shown, real) =
        (std::fs::metadata(home.path("mnt/a")).unwrap(), std::fs::metadata(home.path("export/a")));
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    assert_eq!((shown.uid(), shown.gid()), own);
    let real = real.unwrap();
    assert_eq!((real.uid(), real.gid()), (NOBODY, NOBODY));
    std::os::unix::fs::chown(home.path("mnt/a"), Some(own.0), Some(own.1)).unwrap();
    assert_eq!(std::fs::metadata(home.path("export/a")).unwrap().uid(), NOBODY);
}

// S-16
#[test]
fn write_back_error_is_reported_until_fsync_returns_it() {
    let home = TestHome::new();
    let _tmpfs = Tmpfs::mount(home.path("export"), c"size=256k");
    let _server = home.mounted();
    let file = edit(&home, "mnt/a");
    // One call of the kernel that becomes several messages: its caller continues before the first of them fails. From
    // initialized memory, since the kernel splits a call at untouched pages.
    let data = vec![1; 768 << 10];
    assert_eq!(file.write_at(&data, 0).unwrap(), data.len());
    // As a child does at exec: the result is ignored.
    drop(file.try_clone().unwrap());
    let output = Errno::from_io_error(&file.sync_all().unwrap_err());
    assert_eq!(output, Some(Errno::NOSPC));
    file.sync_all().unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(b"fits", 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(home.read("export/a"), "fits");
}

// S-70
#[test]
fn calls_to_a_dead_server_fail_after_the_deadline_and_work_with_the_next() {
    let home = TestHome::new();
    home.write("export/a", "kept");
    let server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--deadline", "1s", &home.url(), "mnt"]).succeeds();
    server.kill(Signal::KILL);
    server.end();
    wait_for("the mount to notice", || home.status()["connected"] == false);
    let error = std::fs::metadata(home.path("mnt/a")).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::HOSTDOWN));
    let _next = home.serve(&["--listen", &home.url()]);
    wait_for("the mount to connect again", || home.status()["connected"] == true);
    assert_eq!(home.read("mnt/a"), "kept");
}

// S-71
#[test]
fn killed_caller_of_a_silent_server_ends() {
    let home = TestHome::new();
    home.write("export/a", "unread");
    let server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--hard", &home.url(), "mnt"]).succeeds();
    server.kill(Signal::STOP);
    let mut caller = home.command("cat").arg("mnt/a").stdout(Stdio::null()).spawn().unwrap();
    wait_for("the caller to wait", || home.status()["calls_waiting"].as_u64() > Some(0));
    kill_process(rustix::process::Pid::from_child(&caller), Signal::KILL).unwrap();
    wait_for("the caller's end", || caller.try_wait().unwrap().is_some());
    server.kill(Signal::CONT);
    assert_eq!(home.read("mnt/a"), "unread");
}

// S-72
#[test]
fn caller_of_a_silent_server_ends_on_sigquit() {
    let home = TestHome::new();
    home.write("export/a", "unread");
    let server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--hard", &home.url(), "mnt"]).succeeds();
    server.kill(Signal::STOP);
    let mut caller = home.command("sh");
    // SIGQUIT does not interrupt a wait that only fatal signals interrupt, although it is not caught. Shells make
    // background commands ignore it.
    let mut caller = caller
        .args(["-c", "ulimit -c 0; exec env --default-signal=QUIT cat mnt/a"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the caller to wait", || home.status()["calls_waiting"].as_u64() > Some(0));
    kill_process(rustix::process::Pid::from_child(&caller), Signal::QUIT).unwrap();
    wait_for("the caller's end", || caller.try_wait().unwrap().is_some());
    assert_eq!(caller.wait().unwrap().signal(), Some(Signal::QUIT.as_raw()));
    server.kill(Signal::CONT);
    assert_eq!(home.read("mnt/a"), "unread");
}

// S-73
#[test]
fn slow_mount_reports_the_reason() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    server.kill(Signal::STOP);
    let mut command = home.command(crate::home::WIREFS);
    let mut mounting = command.args(["mount", &home.url(), "mnt"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(mounting.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("waiting for the server to answer"), "{line}");
    server.kill(Signal::CONT);
    assert!(mounting.wait().unwrap().success());
    home.wirefs(&["umount", "mnt"]).succeeds();
}

// S-75
#[test]
fn unmount_sends_everything_to_the_server() {
    let home = TestHome::new();
    let _server = home.mounted();
    let data = vec![5; 5_000_000];
    let path = home.path("mnt/a");
    std::fs::write(&path, &data).unwrap();
    Finished::of(home.command("cp").args(["mnt/a", "mnt/b"])).succeeds();
    home.wirefs(&["umount", "mnt"]).succeeds();
    for name in ["export/a", "export/b"] {
        assert!(std::fs::read(home.path(name)).unwrap() == data, "{name}");
    }
}

// S-64
#[test]
fn fallocate_by_an_ordinary_user_clears_set_id_bits() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    for name in ["export/by-user", "export/by-root"] {
        home.write(name, "program");
        let bits = std::fs::Permissions::from_mode(0o6777);
        std::fs::set_permissions(home.path(name), bits).unwrap();
    }
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    let mode = |name: &str| std::fs::metadata(home.path(name)).unwrap().mode() & 0o7777;
    let allocate = |name: &str, user: u32| {
        let path = home.path(name);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o6777, "known here");
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut command = std::process::Command::new("fallocate");
        command.args(["--length", "8192", "/dev/stdin"]).stdin(file).uid(user).gid(user);
        assert!(command.status().unwrap().success());
    };
    allocate("mnt/by-user", NOBODY);
    allocate("mnt/by-root", 0);
    assert_eq!([mode("mnt/by-user"), mode("export/by-user")], [0o777, 0o777]);
    assert_eq!([mode("mnt/by-root"), mode("export/by-root")], [0o6777, 0o6777]);
}

// S-65
#[test]
fn reads_do_not_change_access_times() {
    let home = TestHome::new();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    home.write("export/a", "read");
    edit(&home, "export/a").set_times(std::fs::FileTimes::new().set_accessed(long_ago)).unwrap();
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    assert_eq!(home.read("mnt/a"), "read");
    for name in ["mnt/a", "export/a"] {
        assert_eq!(std::fs::metadata(home.path(name)).unwrap().accessed().unwrap(), long_ago, "{name}");
    }
}

// S-66
#[test]
fn limit_of_extended_attributes_is_the_servers() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    // The number of attributes, and the error of one more. A file system without a limit takes 200.
    let fill = |name: &str| {
        drop(edit(&home, name));
        (0..200).find_map(|number| {
            let attribute = format!("user.attribute_{number:03}");
            let flags = rustix::fs::XattrFlags::empty();
            let path = home.path(name);
            rustix::fs::setxattr(path, attribute, b"value", flags).err().map(|errno| (number, errno))
        })
    };
    assert_eq!(fill("mnt/here"), fill("export/there"));
}

// S-67
#[test]
fn inode_flags_are_not_offered() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    assert_eq!(rustix::fs::ioctl_getflags(edit(&home, "mnt/a")), Err(Errno::NOTTY));
}

// S-75
#[test]
fn mount_waits_for_the_pending_writes_of_an_unmounted_one() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--deadline", "60s", &home.url(), "mnt"]).succeeds();
    home.write("mnt/a", "");
    home.wirefs(&["sync", "mnt"]).succeeds();
    server.kill(Signal::STOP);
    home.write("mnt/a", "written and closed");
    // As umount(8) does: the kernel does not wait for the process of the mount.
    rustix::mount::unmount(home.path("mnt"), UnmountFlags::empty()).unwrap();
    let mut command = home.command(crate::home::WIREFS);
    let mut mounting = command.args(["mount", &home.url(), "mnt"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = std::io::BufReader::new(mounting.stderr.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for an earlier, unmounted mount of this directory"), "{line}");
    server.kill(Signal::CONT);
    assert!(mounting.wait().unwrap().success());
    assert_eq!(home.read("export/a"), "written and closed");
    assert_ne!(home.status()["cache"]["disk"], serde_json::Value::Null, "what is known is kept on disk");
    home.wirefs(&["umount", "mnt"]).succeeds();
}
