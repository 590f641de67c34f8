//! What programs see of a mount while others work in the same tree; the ids are those of docs/SEMANTICS.md.

use crate::world::{Other, Ran, Server, World, copy_program, wait_for};
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

/// Whom an ordinary user's server runs as.
const NOBODY: u32 = 65_534;

/// A small file system in memory, gone afterwards.
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

fn edit(world: &World, name: &str) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(world.path(name)).unwrap()
}

// S-1
#[test]
fn a_program_sees_what_its_own_mount_did_at_once() {
    let world = World::new();
    let _server = world.mounted();
    let file = edit(&world, "mnt/a");
    for round in 0..50_u64 {
        file.write_all_at(&[round as u8; 4096], round * 4096).unwrap();
        assert_eq!(std::fs::metadata(world.path("mnt/a")).unwrap().len(), (round + 1) * 4096);
        let mut last = [0; 1];
        edit(&world, "mnt/a").read_exact_at(&mut last, round * 4096 + 4095).unwrap();
        assert_eq!(last, [round as u8]);
    }
    std::fs::rename(world.path("mnt/a"), world.path("mnt/b")).unwrap();
    let names: Vec<_> =
        std::fs::read_dir(world.path("mnt")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["b"]);
    assert!(!world.path("mnt/a").exists());
}

// S-2
#[test]
fn another_mount_sees_changes_once_what_it_knows_is_out_of_date() {
    let world = World::new();
    world.write("export/a", "old");
    let _server = world.mounted();
    let _other = Other::mount(&world, "window");
    assert_eq!(world.read("other/a"), "old");
    assert!(!world.path("other/new").exists());
    world.write("mnt/a", "newer");
    world.write("mnt/new", "here");
    std::fs::create_dir(world.path("mnt/dir")).unwrap();
    wait_for("the new contents", || world.read("other/a") == "newer");
    wait_for("the new name", || world.path("other/new").exists());
    wait_for("the new directory", || world.path("other/dir").is_dir());
    assert_eq!(world.read("other/new"), "here");
    std::fs::remove_file(world.path("other/a")).unwrap();
    wait_for("the removal", || !world.path("mnt/a").exists());
}

// S-3
#[test]
fn in_strict_mode_a_finished_change_shows_at_the_next_look() {
    let world = World::new();
    let _server = world.mounted();
    let _other = Other::mount(&world, "strict");
    for round in 0..20 {
        let (text, name) = (format!("round {round}"), format!("new{round}"));
        assert!(!world.path("other").join(&name).exists());
        world.write("mnt/a", &text);
        world.write(&format!("mnt/{name}"), "");
        assert_eq!(world.read("other/a"), text);
        assert_eq!(std::fs::metadata(world.path("other/a")).unwrap().len(), text.len() as u64);
        assert!(world.path("other").join(&name).exists());
    }
}

// S-4
#[test]
fn in_strict_mode_a_write_that_returned_is_at_the_server() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    let _other = Other::mount(&world, "strict");
    let mut file = edit(&world, "other/a");
    for line in ["one\n", "two\n", "three\n"] {
        let before = world.read("export/a");
        file.write_all(line.as_bytes()).unwrap();
        assert_eq!(world.read("export/a"), before + line);
    }
}

// S-5
#[test]
fn without_a_journal_a_closed_file_is_at_the_server() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", "--no-journal", &world.url(), "mnt"]).succeeds();
    for round in 0..20 {
        let data = vec![round; 300_000];
        std::fs::write(world.path("mnt/a"), &data).unwrap();
        assert!(std::fs::read(world.path("export/a")).unwrap() == data, "round {round}");
    }
}

// S-5
#[test]
fn who_mounts_after_a_file_was_closed_sees_it() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", "--journal", &world.url(), "mnt"]).succeeds();
    for round in 0..50u8 {
        std::fs::write(world.path(&format!("mnt/{round}")), vec![round; 30_000]).unwrap();
    }
    let _other = Other::mount(&world, "lease");
    for round in 0..50u8 {
        let data = std::fs::read(world.path(&format!("other/{round}"))).unwrap();
        assert!(data == vec![round; 30_000], "round {round}");
    }
}

// S-76
#[test]
fn what_was_shown_of_a_file_before_the_server_had_it_stays_so() {
    use std::os::unix::fs::MetadataExt;
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", "--journal", &world.url(), "mnt"]).succeeds();
    let look = |name: &str| {
        let stat = std::fs::metadata(world.path(name)).unwrap();
        (stat.ino(), stat.mtime(), stat.mtime_nsec(), stat.ctime_nsec())
    };
    std::fs::create_dir(world.path("mnt/d")).unwrap();
    std::fs::write(world.path("mnt/d/f"), "hello").unwrap();
    let before = [look("mnt/d"), look("mnt/d/f")];
    world.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(world.read("export/d/f"), "hello");
    assert_eq!([look("mnt/d"), look("mnt/d/f")], before);
}

// S-6
#[test]
fn a_file_that_was_synced_is_at_the_server_while_it_stays_open() {
    let world = World::new();
    let _server = world.mounted();
    let mut file = edit(&world, "mnt/a");
    let data = vec![7; 3_000_000];
    file.write_all(&data).unwrap();
    file.sync_all().unwrap();
    assert!(std::fs::read(world.path("export/a")).unwrap() == data);
}

// S-8
#[test]
fn whoever_has_the_lock_sees_what_the_last_holder_wrote() {
    let world = World::new();
    world.write("export/a", "00000000");
    let _server = world.mounted();
    let _other = Other::mount(&world, "window");
    let files = [edit(&world, "mnt/a"), edit(&world, "other/a")];
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

// S-10
#[test]
fn lines_that_two_mounts_append_all_arrive_whole() {
    let world = World::new();
    world.write("export/log", "");
    let _server = world.mounted();
    let _other = Other::mount(&world, "window");
    std::thread::scope(|scope| {
        for mount in ["mnt", "other"] {
            let path = world.path(mount).join("log");
            scope.spawn(move || {
                let mut log = OpenOptions::new().append(true).open(path).unwrap();
                for number in 0..300 {
                    log.write_all(format!("{mount} {number}\n").as_bytes()).unwrap();
                }
            });
        }
    });
    let log = world.read("export/log");
    for mount in ["mnt", "other"] {
        let lines = log.lines().filter(|line| line.starts_with(mount));
        let expected: Vec<String> = (0..300).map(|number| format!("{mount} {number}")).collect();
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }
    assert_eq!(log.lines().count(), 600);
}

// S-13
#[test]
fn an_open_file_outlives_its_name() {
    let world = World::new();
    world.write("export/a", "still here");
    let _server = world.mounted();
    let mut file = edit(&world, "mnt/a");
    std::fs::remove_file(world.path("mnt/a")).unwrap();
    world.wirefs(&["sync", "mnt"]).succeeds();
    assert!(!world.path("export/a").exists());
    world.write("mnt/a", "another");
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still here");
    file.write_all(b", and longer").unwrap();
    file.sync_all().unwrap();
    assert_eq!((file.metadata().unwrap().len(), file.metadata().unwrap().nlink()), (22, 0));
    world.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(world.read("export/a"), "another");
}

// S-19
#[test]
fn a_server_of_an_ordinary_user_shows_its_files_as_the_mounting_users() {
    let world = World::new();
    for name in [".", "home", "run", "export"] {
        std::os::unix::fs::chown(world.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    // The program may lie where that user may not look.
    copy_program(&world.path("program"));
    let mut command = world.command(world.path("program").to_str().unwrap());
    command.args(["serve", "export", "--listen", &world.url()]);
    command.uid(NOBODY).gid(NOBODY).stdout(Stdio::piped()).stderr(Stdio::piped());
    let _server = Server::start(command);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    world.write("mnt/a", "text");
    let (shown, real) =
        (std::fs::metadata(world.path("mnt/a")).unwrap(), std::fs::metadata(world.path("export/a")));
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    assert_eq!((shown.uid(), shown.gid()), own);
    let real = real.unwrap();
    assert_eq!((real.uid(), real.gid()), (NOBODY, NOBODY));
    std::os::unix::fs::chown(world.path("mnt/a"), Some(own.0), Some(own.1)).unwrap();
    assert_eq!(std::fs::metadata(world.path("export/a")).unwrap().uid(), NOBODY);
}

// S-22
#[test]
fn an_error_of_a_write_in_the_background_is_told_until_fsync_has_told_it() {
    let world = World::new();
    let _tmpfs = Tmpfs::mount(world.path("export"), c"size=256k");
    let _server = world.mounted();
    let file = edit(&world, "mnt/a");
    // One call of the kernel, of several messages: its caller has gone on when the first of them fails. In memory that
    // was written to, since the kernel cuts a call where it finds none.
    let data = vec![1; 768 << 10];
    assert_eq!(file.write_at(&data, 0).unwrap(), data.len());
    // What a child does when it executes a program: nobody looks at the result.
    drop(file.try_clone().unwrap());
    let told = Errno::from_io_error(&file.sync_all().unwrap_err());
    assert_eq!(told, Some(Errno::NOSPC));
    file.sync_all().unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(b"fits", 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(world.read("export/a"), "fits");
}

// S-24
#[test]
fn callers_of_a_server_that_is_gone_fail_after_the_deadline_and_go_on_with_the_next() {
    let world = World::new();
    world.write("export/a", "kept");
    let server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", "--deadline", "1s", &world.url(), "mnt"]).succeeds();
    server.kill(Signal::KILL);
    server.end();
    wait_for("the mount to notice", || world.status()["connected"] == false);
    let error = std::fs::metadata(world.path("mnt/a")).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::HOSTDOWN));
    let _next = world.serve(&["--listen", &world.url()]);
    wait_for("the mount to connect again", || world.status()["connected"] == true);
    assert_eq!(world.read("mnt/a"), "kept");
}

// S-25
#[test]
fn a_killed_caller_of_a_silent_server_ends() {
    let world = World::new();
    world.write("export/a", "unread");
    let server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", "--hard", &world.url(), "mnt"]).succeeds();
    server.kill(Signal::STOP);
    let mut caller = world.command("cat").arg("mnt/a").stdout(Stdio::null()).spawn().unwrap();
    wait_for("the caller to wait", || world.status()["calls_waiting"].as_u64() > Some(0));
    kill_process(rustix::process::Pid::from_child(&caller), Signal::KILL).unwrap();
    wait_for("the caller's end", || caller.try_wait().unwrap().is_some());
    server.kill(Signal::CONT);
    assert_eq!(world.read("mnt/a"), "unread");
}

// S-159
#[test]
fn a_caller_of_a_silent_server_that_is_asked_to_end_ends() {
    let world = World::new();
    world.write("export/a", "unread");
    let server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", "--hard", &world.url(), "mnt"]).succeeds();
    server.kill(Signal::STOP);
    let mut caller = world.command("sh");
    // SIGQUIT ends no wait that only a fatal signal ends, although nobody catches it. Shells have what they start in the background ignore it.
    let mut caller = caller
        .args(["-c", "ulimit -c 0; exec env --default-signal=QUIT cat mnt/a"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the caller to wait", || world.status()["calls_waiting"].as_u64() > Some(0));
    kill_process(rustix::process::Pid::from_child(&caller), Signal::QUIT).unwrap();
    wait_for("the caller's end", || caller.try_wait().unwrap().is_some());
    assert_eq!(caller.wait().unwrap().signal(), Some(Signal::QUIT.as_raw()));
    server.kill(Signal::CONT);
    assert_eq!(world.read("mnt/a"), "unread");
}

// S-160
#[test]
fn a_mount_that_takes_long_to_make_says_what_it_waits_for() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    server.kill(Signal::STOP);
    let mut command = world.command(crate::world::WIREFS);
    let mut mounting = command.args(["mount", &world.url(), "mnt"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(mounting.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("waiting for the server to answer"), "{line}");
    server.kill(Signal::CONT);
    assert!(mounting.wait().unwrap().success());
    world.wirefs(&["umount", "mnt"]).succeeds();
}

// S-26
#[test]
fn an_unmount_leaves_everything_at_the_server() {
    let world = World::new();
    let _server = world.mounted();
    let data = vec![5; 5_000_000];
    let path = world.path("mnt/a");
    std::fs::write(&path, &data).unwrap();
    Ran::of(world.command("cp").args(["mnt/a", "mnt/b"])).succeeds();
    world.wirefs(&["umount", "mnt"]).succeeds();
    for name in ["export/a", "export/b"] {
        assert!(std::fs::read(world.path(name)).unwrap() == data, "{name}");
    }
}

// S-21
#[test]
fn set_id_bits_fall_when_an_ordinary_user_allocates() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    for name in ["export/by-user", "export/by-root"] {
        world.write(name, "program");
        let bits = std::fs::Permissions::from_mode(0o6777);
        std::fs::set_permissions(world.path(name), bits).unwrap();
    }
    let _server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    let mode = |name: &str| std::fs::metadata(world.path(name)).unwrap().mode() & 0o7777;
    let allocate = |name: &str, user: u32| {
        let path = world.path(name);
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

// S-166
#[test]
fn reads_leave_access_times_alone() {
    let world = World::new();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    world.write("export/a", "read");
    edit(&world, "export/a").set_times(std::fs::FileTimes::new().set_accessed(long_ago)).unwrap();
    let _server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    assert_eq!(world.read("mnt/a"), "read");
    for name in ["mnt/a", "export/a"] {
        assert_eq!(std::fs::metadata(world.path(name)).unwrap().accessed().unwrap(), long_ago, "{name}");
    }
}

// S-167
#[test]
fn a_file_has_as_many_extended_attributes_as_at_the_server() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    // How many there are, and how one more fails. A file system without a limit takes 200.
    let fill = |name: &str| {
        drop(edit(&world, name));
        (0..200).find_map(|number| {
            let attribute = format!("user.attribute_{number:03}");
            let flags = rustix::fs::XattrFlags::empty();
            let path = world.path(name);
            rustix::fs::setxattr(path, attribute, b"value", flags).err().map(|errno| (number, errno))
        })
    };
    assert_eq!(fill("mnt/here"), fill("export/there"));
}

// S-165
#[test]
fn inode_flags_are_not_offered() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    assert_eq!(rustix::fs::ioctl_getflags(edit(&world, "mnt/a")), Err(Errno::NOTTY));
}

// S-26
#[test]
fn a_mount_waits_for_the_one_before_it_that_is_unmounted_and_still_sends() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["mount", "--deadline", "60s", &world.url(), "mnt"]).succeeds();
    world.write("mnt/a", "");
    world.wirefs(&["sync", "mnt"]).succeeds();
    server.kill(Signal::STOP);
    world.write("mnt/a", "written and closed");
    // As umount(8) does: the kernel does not wait for the process that serves the mount.
    rustix::mount::unmount(world.path("mnt"), UnmountFlags::empty()).unwrap();
    let mut command = world.command(crate::world::WIREFS);
    let mut mounting = command.args(["mount", &world.url(), "mnt"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(mounting.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("waiting until an earlier mount of this directory"), "{line}");
    server.kill(Signal::CONT);
    assert!(mounting.wait().unwrap().success());
    assert_eq!(world.read("export/a"), "written and closed");
    assert_ne!(world.status()["cache"]["disk"], serde_json::Value::Null, "what is known is kept on disk");
    world.wirefs(&["umount", "mnt"]).succeeds();
}
