//! A server that is killed and restarted: programs notice only a pause.

use crate::home::{SecondMount, TestHome, wait_for};
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

/// Makes non-idempotent changes.
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

/// A server that is restarted whenever it ends, and its mount.
///
/// By a separate shell: a child of this process closes this process's open files of the mount before it becomes a
/// server, and would wait for that server.
struct RestartingServer<'a> {
    home: &'a TestHome,
    shell: Child,
}

impl RestartingServer<'_> {
    fn mounted(home: &TestHome) -> RestartingServer<'_> {
        // Only this mount has leases, so the server need not wait for others to expire.
        let kept = RestartingServer::serving(home, "rm -rf home/.local/state/wirefs/exports");
        home.wirefs(&["mount", "--deadline", "120s", &home.url(), "mnt"]).succeeds();
        kept
    }

    /// Starts the server only. `before`: a command that runs before each start.
    fn serving<'a>(home: &'a TestHome, before: &str) -> RestartingServer<'a> {
        let script = format!(
            "while :; do {before}; wirefs serve export --listen {} >serving 2>>said & \
             echo $! >next; mv next server; wait $!; done",
            home.url()
        );
        let shell =
            home.command("sh").args(["-c", &script]).process_group(0).stderr(Stdio::null()).spawn().unwrap();
        let kept = RestartingServer { home, shell };
        wait_for("the server", || fs::read(home.path("serving")).is_ok_and(|line| !line.is_empty()));
        kept
    }

    fn server(&self) -> Pid {
        Pid::from_raw(self.home.read("server").trim().parse().unwrap()).unwrap()
    }

    /// Kills the server and waits for the next one.
    fn kill(&self) {
        let killed = self.server();
        kill_process(killed, Signal::KILL).unwrap();
        wait_for("another server", || self.server() != killed);
    }
}

impl Drop for RestartingServer<'_> {
    fn drop(&mut self) {
        let _gone = kill_process_group(Pid::from_child(&self.shell), Signal::KILL);
        let _reaped = self.shell.wait();
    }
}

// S-86
#[test]
fn programs_notice_no_server_restarts() {
    let home = TestHome::new();
    let kept = RestartingServer::mounted(&home);
    let (is_done, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let program = |index: usize| -> usize {
        let dir = home.path("mnt").join(format!("program{index}"));
        fs::create_dir(&dir).unwrap();
        let mut number = 0;
        while !is_done.load(Ordering::Relaxed) {
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
        is_done.store(true, Ordering::Relaxed);
        programs.into_iter().map(|program| program.join().unwrap()).collect()
    });
    home.wirefs(&["umount", "mnt"]).succeeds();
    for (index, rounds) in done.into_iter().enumerate() {
        let dir = home.path("export").join(format!("program{index}"));
        let rounds_left = (1..rounds).step_by(2);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), rounds_left.clone().count());
        for number in rounds_left {
            assert_eq!(fs::read(dir.join(format!("dir{number}/moved"))).unwrap(), b"onetwo");
        }
    }
}

/// Bytes of each record of [`append_records`].
const RECORD: usize = 5000;

fn record(index: usize) -> Vec<u8> {
    format!("{index:08}\n").repeat(RECORD.div_ceil(9)).into_bytes()[..RECORD].to_vec()
}

/// Appends records to a file, with one or several writes between two calls of `fsync`, until the end. Returns the
/// number of synced records.
fn append_records(path: &Path, synced: &AtomicUsize, is_done: &AtomicBool) -> usize {
    let file = OpenOptions::new().write(true).create_new(true).open(path).unwrap();
    let mut count = 0;
    for batch in (1..=4).cycle().take_while(|_| !is_done.load(Ordering::Relaxed)) {
        for index in count..count + batch {
            file.write_all_at(&record(index), (index * RECORD) as u64).unwrap();
        }
        file.sync_all().unwrap_or_else(|error| panic!("{} after {count}: {error}", path.display()));
        count += batch;
        synced.fetch_add(1, Ordering::Relaxed);
    }
    count
}

// S-86 S-81
#[test]
fn synced_data_of_several_modes_survives_repeated_kills() {
    let home = TestHome::new();
    let kept = RestartingServer::serving(&home, ":");
    home.wirefs(&["mount", "--mode", "commit", "--deadline", "120s", &home.url(), "mnt"]).succeeds();
    let other = SecondMount::mount_with_deadline(&home, "lease", "120s");
    let (is_done, synced) = (AtomicBool::new(false), AtomicUsize::new(0));
    let paths: Vec<_> =
        (0..PROGRAMS).map(|index| format!("{}/f{index}", ["mnt", "other"][index % 2])).collect();
    let counts: Vec<usize> = thread::scope(|scope| {
        let (is_done, synced, home) = (&is_done, &synced, &home);
        let keeps = |path: &String| {
            let path = home.path(path);
            scope.spawn(move || append_records(&path, synced, is_done))
        };
        let programs: Vec<_> = paths.iter().map(keeps).collect();
        for _ in 0..KILLS {
            let before = synced.load(Ordering::Relaxed);
            let is_over = || programs.iter().any(thread::ScopedJoinHandle::is_finished);
            wait_for("the programs to be at work", || {
                synced.load(Ordering::Relaxed) > before + PROGRAMS || is_over()
            });
            // Further servers are killed while the mounts reconnect.
            for _ in 0..3 {
                kept.kill();
            }
        }
        is_done.store(true, Ordering::Relaxed);
        programs.into_iter().map(|program| program.join().unwrap()).collect()
    });
    for (path, count) in paths.iter().zip(counts) {
        let file = fs::read(home.path("export").join(Path::new(path).file_name().unwrap())).unwrap();
        assert_eq!(file.len(), count * RECORD);
        for (index, found) in file.chunks(RECORD).enumerate() {
            assert_eq!(found, record(index), "{path}, record {index}");
        }
    }
    drop(other);
    home.wirefs(&["umount", "mnt"]).succeeds();
    // No mount violated the protocol.
    let logs =
        fs::read_dir(home.path("home/.local/state/wirefs")).unwrap().flatten().map(|entry| entry.path());
    for log in logs.filter(|path| path.extension().is_some_and(|end| end == "log")).chain([home.path("said")])
    {
        let output = fs::read_to_string(log).unwrap();
        assert!(!output.contains("out of place"), "{output}");
    }
}

// S-86
#[test]
fn writes_to_an_open_file_reach_it_after_a_rename() {
    let home = TestHome::new();
    let server = RestartingServer::mounted(&home);
    let mount = home.path("mnt");
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
        assert_eq!(home.read(&format!("export/{name}")), "beforebehind");
    }
    // A file without a name ends with the server process that held it.
    assert!(gone.write_all_at(b"behind", 6).and_then(|()| gone.sync_all()).is_err());
    assert_eq!(fs::read_dir(home.path("export")).unwrap().count(), 2);
    drop((kept, moved, gone));
}

#[test]
fn ledger_is_private_and_contains_no_session_id() {
    let home = TestHome::new();
    let _server = home.mounted();
    fs::write(home.path("mnt/f"), "text").unwrap();
    let dir = home.path("home/.local/state/wirefs/ledger");
    let exports: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [export] = exports.as_slice() else { panic!("{exports:?}") };
    let logs: Vec<_> = fs::read_dir(export).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [log] = logs.as_slice() else { panic!("{logs:?}") };
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(export), mode(log)), (0o700, 0o700, 0o600));
    assert!(fs::read(log).unwrap().starts_with(b"wfnotes"));
}

#[test]
fn server_without_a_ledger_directory_reports_it_and_works() {
    let home = TestHome::new();
    home.write("home/.local/state/wirefs/ledger", "in the way");
    let server = home.mounted();
    fs::write(home.path("mnt/f"), "text").unwrap();
    assert_eq!(home.read("mnt/f"), "text");
    home.wirefs(&["umount", "mnt"]).succeeds();
    server.kill(Signal::TERM);
    let output = server.end().stderr;
    assert_eq!(output.matches("changes are recorded in memory only").count(), 1, "{output}");
}
