//! A server that is killed and started again: programs see a pause.

use crate::world::{Other, World, wait_for};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

const PROGRAMS: usize = 4;
const KILLS: usize = 8;

/// Changes that fail or leave something else when they are done twice.
fn round(dir: &Path, number: usize) -> io::Result<()> {
    let at = |name: &str| dir.join(format!("{name}{number}"));
    fs::create_dir(at("dir"))?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(at("new"))?;
    file.write_all(b"one")?;
    drop(file);
    symlink("new", at("symlink"))?;
    fs::hard_link(at("new"), at("link"))?;
    fs::rename(at("new"), at("dir").join("moved"))?;
    OpenOptions::new().append(true).open(at("link"))?.write_all(b"two")?;
    fs::remove_file(at("link"))?;
    fs::remove_file(at("symlink"))?;
    if number.is_multiple_of(2) {
        fs::remove_file(at("dir").join("moved"))?;
        fs::remove_dir(at("dir"))?;
    }
    Ok(())
}

/// A server that is started again whenever it ends, and its mount.
///
/// By a shell of its own: a process that this one starts closes what this one has open in the mount before it becomes a
/// server, and would wait for that server.
struct Kept<'a> {
    world: &'a World,
    shell: Child,
}

impl Kept<'_> {
    fn mounted(world: &World) -> Kept<'_> {
        // The one mount is the only one that was promised anything, so nothing has to wait until others believe it no longer.
        let kept = Kept::serving(world, "rm -rf home/.local/state/wirefs/exports");
        world.wirefs(&["mount", "--deadline", "120s", &world.url(), "mnt"]).succeeds();
        kept
    }

    /// The server alone. `before`: a command that runs before each start.
    fn serving<'a>(world: &'a World, before: &str) -> Kept<'a> {
        let script = format!(
            "while :; do {before}; wirefs serve export --listen {} >serving 2>>said & \
             echo $! >next; mv next server; wait $!; done",
            world.url()
        );
        let shell =
            world.command("sh").args(["-c", &script]).process_group(0).stderr(Stdio::null()).spawn().unwrap();
        let kept = Kept { world, shell };
        wait_for("the server", || fs::read(world.path("serving")).is_ok_and(|line| !line.is_empty()));
        kept
    }

    fn server(&self) -> Pid {
        Pid::from_raw(self.world.read("server").trim().parse().unwrap()).unwrap()
    }

    /// Kills the server and waits for the next one.
    fn kill(&self) {
        let killed = self.server();
        kill_process(killed, Signal::KILL).unwrap();
        wait_for("another server", || self.server() != killed);
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let _gone = kill_process_group(Pid::from_child(&self.shell), Signal::KILL);
        let _reaped = self.shell.wait();
    }
}

// S-75
#[test]
fn programs_see_nothing_of_servers_that_are_killed_and_started_again() {
    let world = World::new();
    let kept = Kept::mounted(&world);
    let (over, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let program = |index: usize| -> usize {
        let dir = world.path("mnt").join(format!("program{index}"));
        fs::create_dir(&dir).unwrap();
        let mut number = 0;
        while !over.load(Ordering::Relaxed) {
            round(&dir, number).unwrap_or_else(|error| panic!("round {number} of {index}: {error}"));
            number += 1;
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        number
    };
    let done: Vec<usize> = thread::scope(|scope| {
        let program = &program;
        let programs: Vec<_> = (0..PROGRAMS).map(|index| scope.spawn(move || program(index))).collect();
        for _ in 0..KILLS {
            let before = rounds.load(Ordering::Relaxed);
            let is_over = || programs.iter().any(|program| program.is_finished());
            wait_for("the programs to be at work", || {
                rounds.load(Ordering::Relaxed) > before + 2 * PROGRAMS || is_over()
            });
            kept.kill();
        }
        over.store(true, Ordering::Relaxed);
        programs.into_iter().map(|program| program.join().unwrap()).collect()
    });
    world.wirefs(&["umount", "mnt"]).succeeds();
    for (index, rounds) in done.into_iter().enumerate() {
        let dir = world.path("export").join(format!("program{index}"));
        let left = (1..rounds).step_by(2);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), left.clone().count());
        for number in left {
            assert_eq!(fs::read(dir.join(format!("dir{number}/moved"))).unwrap(), b"onetwo");
        }
    }
}

/// Bytes of each record of [`keeps_a_file`].
const RECORD: usize = 5000;

fn record(index: usize) -> Vec<u8> {
    format!("{index:08}\n").repeat(RECORD.div_ceil(9)).into_bytes()[..RECORD].to_vec()
}

/// Appends records to a file, some with one write and some with several between two calls of `fsync`, until it is over. Returns how many
/// of them were synced.
fn keeps_a_file(path: &Path, synced: &AtomicUsize, over: &AtomicBool) -> usize {
    let file = OpenOptions::new().write(true).create_new(true).open(path).unwrap();
    let mut count = 0;
    for batch in (1..=4).cycle().take_while(|_| !over.load(Ordering::Relaxed)) {
        for index in count..count + batch {
            file.write_all_at(&record(index), (index * RECORD) as u64).unwrap();
        }
        file.sync_all().unwrap_or_else(|error| panic!("{} after {count}: {error}", path.display()));
        count += batch;
        synced.fetch_add(1, Ordering::Relaxed);
    }
    count
}

// S-75 S-157
#[test]
fn what_is_synced_in_several_modes_is_there_though_servers_are_killed_back_to_back() {
    let world = World::new();
    let kept = Kept::serving(&world, ":");
    world.wirefs(&["mount", "--mode", "commit", "--deadline", "120s", &world.url(), "mnt"]).succeeds();
    let other = Other::mount_with_deadline(&world, "lease", "120s");
    let (over, synced) = (AtomicBool::new(false), AtomicUsize::new(0));
    let paths: Vec<_> =
        (0..PROGRAMS).map(|index| format!("{}/f{index}", ["mnt", "other"][index % 2])).collect();
    let counts: Vec<usize> = thread::scope(|scope| {
        let (over, synced, world) = (&over, &synced, &world);
        let keeps = |path: &String| {
            let path = world.path(path);
            scope.spawn(move || keeps_a_file(&path, synced, over))
        };
        let programs: Vec<_> = paths.iter().map(keeps).collect();
        for _ in 0..KILLS {
            let before = synced.load(Ordering::Relaxed);
            let is_over = || programs.iter().any(thread::ScopedJoinHandle::is_finished);
            wait_for("the programs to be at work", || {
                synced.load(Ordering::Relaxed) > before + PROGRAMS || is_over()
            });
            // The next ones are killed while the mounts come back to them.
            for _ in 0..3 {
                kept.kill();
            }
        }
        over.store(true, Ordering::Relaxed);
        programs.into_iter().map(|program| program.join().unwrap()).collect()
    });
    for (path, count) in paths.iter().zip(counts) {
        let file = fs::read(world.path("export").join(Path::new(path).file_name().unwrap())).unwrap();
        assert_eq!(file.len(), count * RECORD);
        for (index, found) in file.chunks(RECORD).enumerate() {
            assert_eq!(found, record(index), "{path}, record {index}");
        }
    }
    drop(other);
    world.wirefs(&["umount", "mnt"]).succeeds();
    // None of the two broke the protocol.
    let logs =
        fs::read_dir(world.path("home/.local/state/wirefs")).unwrap().flatten().map(|entry| entry.path());
    for log in
        logs.filter(|path| path.extension().is_some_and(|end| end == "log")).chain([world.path("said")])
    {
        let said = fs::read_to_string(log).unwrap();
        assert!(!said.contains("out of place"), "{said}");
    }
}

// S-75
#[test]
fn what_is_written_through_an_open_file_goes_to_that_file_wherever_it_is() {
    let world = World::new();
    let server = Kept::mounted(&world);
    let mount = world.path("mnt");
    let open = |name: &str| {
        OpenOptions::new().read(true).write(true).create_new(true).open(mount.join(name)).unwrap()
    };
    let [kept, moved, gone] = ["kept", "moved", "gone"].map(open);
    for file in [&kept, &moved, &gone] {
        file.write_all_at(b"before", 0).unwrap();
        file.sync_all().unwrap();
    }
    fs::rename(mount.join("moved"), mount.join("elsewhere")).unwrap();
    fs::remove_file(mount.join("gone")).unwrap();
    server.kill();
    for file in [&kept, &moved] {
        file.write_all_at(b"behind", 6).unwrap();
        file.sync_all().unwrap();
    }
    for name in ["kept", "elsewhere"] {
        assert_eq!(world.read(&format!("export/{name}")), "beforebehind");
    }
    // What has no name is gone with the process that held it.
    assert!(gone.write_all_at(b"behind", 6).and_then(|()| gone.sync_all()).is_err());
    assert_eq!(fs::read_dir(world.path("export")).unwrap().count(), 2);
    drop((kept, moved, gone));
}

#[test]
fn what_is_noted_is_the_users_alone_and_names_no_session() {
    let world = World::new();
    let _server = world.mounted();
    fs::write(world.path("mnt/f"), "text").unwrap();
    let dir = world.path("home/.local/state/wirefs/ledger");
    let exports: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [export] = exports.as_slice() else { panic!("{exports:?}") };
    let logs: Vec<_> = fs::read_dir(export).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [log] = logs.as_slice() else { panic!("{logs:?}") };
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(export), mode(log)), (0o700, 0o700, 0o600));
    assert!(fs::read(log).unwrap().starts_with(b"wfnotes"));
}

#[test]
fn a_server_without_a_place_for_notes_says_so_and_works() {
    let world = World::new();
    world.write("home/.local/state/wirefs/ledger", "in the way");
    let server = world.mounted();
    fs::write(world.path("mnt/f"), "text").unwrap();
    assert_eq!(world.read("mnt/f"), "text");
    world.wirefs(&["umount", "mnt"]).succeeds();
    server.kill(Signal::TERM);
    let said = server.end().stderr;
    assert_eq!(said.matches("changes are remembered in memory only").count(), 1, "{said}");
}
