//! Power cuts: the disk of the server's machine loses power at random moments while programs work in a mount with a journal.
//!
//! ```text
//!   program ── mnt ── wirefs mount ── socket ── wirefs serve ── export and ledger ── ext4 or xfs ── loop device
//!      └── reference: the same, done to a plain directory                              power cut
//! ```
//! A cut shuts the file system down without writing its log (`FS_IOC_SHUTDOWN`); it is mounted again, under another boot id. Before the
//! server is started again, the disk has everything that an `fsync` acknowledged. Changes are in progress at the cut, and a second cut may
//! hit the replay. Half of the cuts follow a write of the file system's log at once, since many faults need names without contents. After
//! half of the cuts the mount shows the tree that the disk has. No call of a program fails, and in the end the tree is that of an
//! undisturbed run.
//!
//! `WIREFS_POWER_CUTS` sets how many cuts there are in each test, `WIREFS_POWER_SEED` which: `make power`.

mod calls;
mod programs;
mod storm;
mod synced;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use wirefs_lab::random::Random;

use crate::machine::{FileSystem, Kept, Logs};
use crate::site::{Site, wait_for};
use crate::snapshot::{Looks, Snapshot};
use calls::StormWork;
use programs::{Program, Programs};

/// How many cuts there are in a test when nothing else is said.
const CUTS: u64 = 3;
/// How long callers wait for a server: longer than any test.
const OPTIONS: [&str; 3] = ["--journal", "--deadline", "300s"];
/// The contents of these files depend on inodes, times, or the order of pages.
const LOOKS: Looks<'_> =
    Looks { mtimes: false, except: &[programs::DATABASE, "database-journal", ".git/index"] };

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// How far a program is.
#[derive(Default)]
struct Progress {
    /// Steps that were begun.
    begun: AtomicU64,
    /// The program is to rest before its next step, and does.
    is_held: AtomicBool,
    rests: AtomicBool,
    /// The program is to end.
    is_over: AtomicBool,
}

impl Progress {
    /// The number of the next step, from 0 on. `None`: the program is to end.
    fn next_step(&self) -> Option<u64> {
        let is_over = || self.is_over.load(Ordering::SeqCst);
        if self.is_held.load(Ordering::SeqCst) {
            self.rests.store(true, Ordering::SeqCst);
            wait_for("the power to be back", || !self.is_held.load(Ordering::SeqCst) || is_over());
            self.rests.store(false, Ordering::SeqCst);
        }
        (!is_over()).then(|| self.begun.fetch_add(1, Ordering::SeqCst))
    }
}

/// Ends the program also where a check has failed.
struct Over<'a>(&'a Progress);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

/// Ends the mount where a check has failed, so that the program's calls fail too. Each of them would otherwise wait out its deadline for a
/// server that may be off.
struct AbortAfterFailure<'a>(&'a Path);

impl Drop for AbortAfterFailure<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            Command::new("umount").args(["--lazy", "--force"]).arg(self.0).status().ok();
        }
    }
}

/// A program that works in the mount, and does the same in a plain directory.
trait Work: Sync {
    /// Results that an `fsync` has acknowledged, and no later change replaced.
    type Promises;

    /// Does steps until it is over. Panics where a call fails.
    fn run(&self, progress: &Progress);

    /// The promises at this moment.
    fn promises(&self) -> Self::Promises;

    /// The promises that were made before a power cut, unchanged after it, and that the disk does not keep.
    fn missing(&self, before: &Self::Promises, after: &Self::Promises, disk: &Path) -> Vec<String>;
}

/// All contents, for one tree seen twice.
const ALL: Looks<'_> = Looks { mtimes: false, except: &[] };

fn assert_same(tree: &Path, reference: &Path, when: &str) {
    Snapshot::of(tree, LOOKS).assert_same(&Snapshot::of(reference, LOOKS), when);
    assert_eq!(programs::rows(tree), programs::rows(reference), "{when}");
}

/// The power cuts of one run.
struct Cuts<'a> {
    site: &'a Site,
    mount: &'a Path,
    server: &'a Kept<'a>,
    progress: &'a Progress,
    dice: Random,
    /// The start of the server that runs.
    served_at: Instant,
}

impl Cuts<'_> {
    /// Up to a second and a half; most are short.
    fn pause(&mut self) {
        let micros = if self.dice.below(3) == 0 { 1_500_000 } else { 100_000 };
        thread::sleep(Duration::from_micros(self.dice.below(micros)));
    }

    /// One cut: right after the file system has written its log, or at a random moment, in part soon after it has written all.
    fn cut(&mut self, work: &impl Work) -> Vec<String> {
        self.pause();
        match self.dice.below(4) {
            0 | 1 => self.server.sync_log(),
            2 => {
                self.server.sync_disk();
                self.pause();
            }
            _ => {}
        }
        let missing = self.lose_power_while_busy(work);
        if self.dice.below(2) == 0 {
            self.compare();
        }
        missing
    }

    /// In one of four cases there is another cut while the mount still sends again what the first one lost.
    fn lose_power_while_busy(&mut self, work: &impl Work) -> Vec<String> {
        let mut missing = self.lose_power(work);
        if self.dice.below(4) == 0 {
            thread::sleep(Duration::from_micros(self.dice.below(300_000)));
            let again = self.lose_power(work);
            missing.extend(again.into_iter().map(|lost| format!("{lost}, lost by the second cut")));
        }
        missing
    }

    /// Compares the mount's tree with the disk's while the program rests.
    fn compare(&self) {
        self.progress.is_held.store(true, Ordering::SeqCst);
        let is_over = || self.progress.is_over.load(Ordering::SeqCst);
        wait_for("the program to rest", || self.progress.rests.load(Ordering::SeqCst) || is_over());
        if is_over() {
            // It has failed, and says why.
            return;
        }
        wait_for("the server's replies", || self.is_settled());
        let disk = Snapshot::of(&self.server.on_disk(), ALL);
        Snapshot::of(self.mount, ALL).assert_same(&disk, "the mount beside the disk");
        self.progress.is_held.store(false, Ordering::SeqCst);
    }

    /// Whether the server that runs has answered all changes. Changes that the last server answered count as answered until the mount is
    /// connected to this one and sends them again.
    fn is_settled(&self) -> bool {
        let text = self.site.wirefs(&["status", "--json", self.mount.to_str().unwrap()]).succeeds();
        let status: Value = serde_json::from_str(&text).unwrap();
        let connected_for = Duration::from_millis(status["connection_age_ms"].as_u64().unwrap());
        status["connected"] == true
            && connected_for < self.served_at.elapsed()
            && status["in_flight"].as_object().unwrap().values().all(|count| count == 0)
            && status["journal"]["unanswered_changes"] == 0
    }

    fn lose_power(&mut self, work: &impl Work) -> Vec<String> {
        let before = work.promises();
        self.server.lose_power();
        self.server.boot();
        let missing = work.missing(&before, &work.promises(), &self.server.on_disk());
        self.served_at = Instant::now();
        self.server.serve();
        missing
    }
}

fn run<W: Work>(name: &str, file_system: FileSystem, work: impl FnOnce(&Path, &Path, &Site, u64) -> W) {
    let (cuts, seed) = (setting("WIREFS_POWER_CUTS", CUTS), setting("WIREFS_POWER_SEED", 1));
    let site = Site::unix(name);
    let _logs = Logs(&site);
    let server = Kept::of(&site, Some(file_system));
    let (mount, reference) = (site.mount("mnt", &OPTIONS), site.path("reference"));
    fs::create_dir(&reference).unwrap();
    let (work, progress) = (work(&mount, &reference, &site, seed), Progress::default());
    thread::scope(|scope| {
        let program = scope.spawn(|| {
            let _over = Over(&progress);
            work.run(&progress);
        });
        let (over, _abort) = (Over(&progress), AbortAfterFailure(&mount));
        let dice = Random::new(seed);
        let mut power = Cuts {
            site: &site,
            mount: &mount,
            server: &server,
            progress: &progress,
            dice,
            served_at: Instant::now(),
        };
        for number in 1..=cuts {
            let before = progress.begun.load(Ordering::SeqCst);
            wait_for("the program to be at work", || {
                progress.begun.load(Ordering::SeqCst) > before || program.is_finished()
            });
            if program.is_finished() {
                break;
            }
            let missing = power.cut(&work);
            let begun = progress.begun.load(Ordering::SeqCst);
            println!("{name}, seed {seed}: cut {number}, step {begun}");
            assert!(missing.is_empty(), "{name}, seed {seed}, cut {number}: not on the disk: {missing:?}");
        }
        drop(over);
        program.join().unwrap_or_else(|_| panic!("{name}, seed {seed}: the program has failed"));
    });
    assert_same(&mount, &reference, &format!("{name}, seed {seed}: in the end"));
    site.unmount(&mount);
    assert_same(&server.export(), &reference, &format!("{name}, seed {seed}: at the server"));
    assert_eq!(site.wirefs(&["quarantine", "list", "--json"]).succeeds().trim(), "[]", "{name}, seed {seed}");
}

fn run_storm(name: &str, file_system: FileSystem) {
    run(name, file_system, |mount, reference, _, seed| StormWork::new(mount, reference, seed));
}

fn run_program(name: &str, file_system: FileSystem, program: Program) {
    run(name, file_system, |mount, reference, site, _| Programs::new(program, mount, reference, site));
}

// S-100
#[test]
fn storm_on_ext4() {
    run_storm("storm-ext4", FileSystem::Ext4);
}

// S-100
#[test]
fn storm_on_xfs() {
    run_storm("storm-xfs", FileSystem::Xfs);
}

// S-100
#[test]
fn untar_on_ext4() {
    run_program("untar-ext4", FileSystem::Ext4, Program::Untar);
}

// S-100
#[test]
fn untar_on_xfs() {
    run_program("untar-xfs", FileSystem::Xfs, Program::Untar);
}

// S-100
#[test]
fn sqlite_on_ext4() {
    run_program("sqlite-ext4", FileSystem::Ext4, Program::Sqlite);
}

// S-100
#[test]
fn sqlite_on_xfs() {
    run_program("sqlite-xfs", FileSystem::Xfs, Program::Sqlite);
}

// S-100
#[test]
fn git_on_ext4() {
    run_program("git-ext4", FileSystem::Ext4, Program::Git);
}

// S-100
#[test]
fn git_on_xfs() {
    run_program("git-xfs", FileSystem::Xfs, Program::Git);
}

// S-100 S-131
#[test]
fn rewrite_on_ext4() {
    run_program("rewrite-ext4", FileSystem::Ext4, Program::Rewrite);
}

// S-100 S-131
#[test]
fn rewrite_on_xfs() {
    run_program("rewrite-xfs", FileSystem::Xfs, Program::Rewrite);
}

// S-100 S-130
#[test]
fn sqlite_persist_on_ext4() {
    run_program("sqlite-persist-ext4", FileSystem::Ext4, Program::SqlitePersist);
}

// S-100 S-130
#[test]
fn sqlite_persist_on_xfs() {
    run_program("sqlite-persist-xfs", FileSystem::Xfs, Program::SqlitePersist);
}
