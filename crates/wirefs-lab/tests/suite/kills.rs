//! Kills: the process of the mount, that of the server, or both end at random moments (`kill -9`) while a program changes the tree; the
//! server's machine loses power; the line is cut, or connections are reset.
//!
//! ```text
//!   program ── mnt ── wirefs mount ── socket or line ── wirefs serve ── export and ledger ── disk
//!      |                  killed        cut, reset         killed                             power cut
//!      └── reference: the same, done to a plain directory
//! ```
//! Where the mount lives, the program sees no error. Where it was killed, the program does the step that failed once more, in the next
//! mount; all before it must be there. In the end the tree is that of an undisturbed run. Synced data is on the disk after each power
//! cut, before the server is started again.
//!
//! `WIREFS_KILLS`, `WIREFS_KILLS_POWER` and `WIREFS_KILLS_CUTS` set how many there are of each, `WIREFS_KILLS_SEED` which: `make kills`.

mod faults;
mod programs;
mod work;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use wirefs_lab::LinkProfile;
use wirefs_lab::random::Random;

use crate::machine::{FileSystem, Kept, Logs};
use crate::site::{Site, wait_for};
use crate::snapshot::{Looks, Snapshot};
use faults::{Fault, Faults};
use programs::Materials;
use work::{Step, Steps};

/// How many kills there are when nothing else is said.
const KILLS: u64 = 8;
/// Steps of the program between two faults, at most.
const STEPS_BETWEEN: u64 = 60;
/// How long callers wait for a server: longer than any test.
const OPTIONS: [&str; 3] = ["--journal", "--deadline", "300s"];
/// The exceptions have a comparison of their own: the order of pages does not matter in a database.
const LOOKS: Looks<'_> = Looks { mtimes: false, except: &work::EXCEPT };

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// The state that the program shares with the thread that kills.
#[derive(Default)]
struct Course {
    /// Steps that were begun.
    begun: AtomicU64,
    /// The step that was begun last takes locks.
    locks: AtomicBool,
    /// The last number whose file is synced.
    synced: AtomicU64,
    /// The mount was killed so often, and made anew so often.
    killed: AtomicU64,
    mounted: AtomicU64,
    /// The program is to end, or has.
    is_over: AtomicBool,
}

/// Ends the program also where who kills has failed.
struct Over<'a>(&'a Course);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

impl Course {
    fn is_between(&self, before: u64) -> bool {
        self.killed.load(Ordering::SeqCst) > before
    }
}

/// Where the program works.
struct Trees<'a> {
    mount: &'a Path,
    reference: &'a Path,
    materials: &'a Materials,
}

/// Does steps until it is told to end; tells how many.
fn program(course: &Course, trees: &Trees<'_>, seed: u64) -> u64 {
    let mut steps = Steps::new(seed);
    let mut done = 0;
    while !course.is_over.load(Ordering::SeqCst) {
        for step in steps.next_round() {
            one(course, trees, &step, done);
            done += 1;
        }
    }
    done
}

/// Does one step in the mount, as often as it takes, and in the reference.
fn one(course: &Course, trees: &Trees<'_>, step: &Step, number: u64) {
    let Trees { mount, reference, materials } = trees;
    course.locks.store(matches!(step, Step::Insert(_)), Ordering::SeqCst);
    course.begun.fetch_add(1, Ordering::SeqCst);
    let mut is_again = false;
    loop {
        let before = course.mounted.load(Ordering::SeqCst);
        match step.apply(mount, materials, is_again) {
            // Where there is no mount it was done in the directory below, or nothing was there to be removed.
            Ok(()) if course.is_between(before) => {}
            Ok(()) => break,
            Err(error) => {
                assert!(course.is_between(before), "step {number}, {step:?}, again {is_again}: {error}")
            }
        }
        wait_for("the next mount", || course.mounted.load(Ordering::SeqCst) > before);
        is_again = true;
    }
    if let Step::Sync(number) = step {
        course.synced.store(*number, Ordering::SeqCst);
    }
    step.apply(reference, materials, false)
        .unwrap_or_else(|error| panic!("step {number}, {step:?} here: {error}"));
    if is_again {
        same(mount, reference, &format!("after step {number}, {step:?}"));
    }
}

fn same(tree: &Path, reference: &Path, when: &str) {
    Snapshot::of(tree, LOOKS).assert_same(&Snapshot::of(reference, LOOKS), when);
    assert_eq!(work::rows(tree), work::rows(reference), "{when}");
}

/// How many of each there are, and which.
struct Plan {
    kills: u64,
    power: u64,
    cuts: u64,
    seed: u64,
    /// Cuts of the line may be longer than each side waits for a word of the other; the mount may die with the power, and that fail twice.
    is_long: bool,
}

impl Plan {
    /// In an order that the seed decides.
    fn faults(&self, dice: &mut Random) -> Vec<Fault> {
        let of = |count: u64, fault: Fault| (0..count).map(move |_| fault);
        let mut faults: Vec<Fault> = of(self.kills, Fault::Kill)
            .chain(of(self.power, Fault::Power))
            .chain(of(self.cuts, Fault::Cut))
            .collect();
        for last in (1..faults.len()).rev() {
            faults.swap(last, dice.below(last as u64 + 1) as usize);
        }
        faults
    }

    fn run(&self, name: &str) {
        let Plan { kills, power, cuts, seed, .. } = *self;
        println!("{kills} kills, {power} power cuts and {cuts} cuts of the line, of seed {seed}");
        let site = if cuts > 0 { Site::tls(name, LinkProfile::default()) } else { Site::unix(name) };
        let _logs = Logs(&site);
        let server = Kept::of(&site, (power > 0).then_some(FileSystem::Ext4));
        let mount = site.mount("mnt", &OPTIONS);
        let (reference, materials) = (site.path("reference"), Materials::of(&site));
        fs::create_dir(&reference).unwrap();
        let (course, mut dice) = (Course::default(), Random::new(seed));
        let planned = self.faults(&mut dice);
        let trees = Trees { mount: &mount, reference: &reference, materials: &materials };
        let steps = thread::scope(|scope| {
            let program = scope.spawn(|| program(&course, &trees, seed));
            let over = Over(&course);
            let mut faults = Faults::new(&site, &server, &mount, &course, self.is_long, &mut dice);
            for (number, fault) in planned.iter().enumerate() {
                let until = course.begun.load(Ordering::SeqCst) + 1 + faults.below(STEPS_BETWEEN);
                wait_for("the program to be at work", || {
                    course.begun.load(Ordering::SeqCst) >= until || program.is_finished()
                });
                if program.is_finished() {
                    break;
                }
                let how = faults.happens(*fault);
                let begun = course.begun.load(Ordering::SeqCst);
                println!("{} of seed {seed}, {how}: step {begun}", number + 1);
            }
            drop(over);
            program.join().unwrap_or_else(|_| panic!("seed {seed}: the program has failed"))
        });
        println!("{steps} steps");
        same(&mount, &reference, &format!("in the end, seed {seed}"));
        site.unmount(&mount);
        same(&server.export(), &reference, &format!("at the server, seed {seed}"));
        assert_eq!(site.wirefs(&["quarantine", "list", "--json"]).succeeds().trim(), "[]", "seed {seed}");
    }
}

// S-90
#[test]
fn tree_equals_that_of_an_undisturbed_run_after_kills_at_any_time() {
    let (kills, seed) = (setting("WIREFS_KILLS", KILLS), setting("WIREFS_KILLS_SEED", 1));
    let (power, cuts) = (setting("WIREFS_KILLS_POWER", 0), setting("WIREFS_KILLS_CUTS", 0));
    Plan { kills, power, cuts, seed, is_long: true }.run("kills");
}

// S-100
#[test]
fn when_the_servers_disk_loses_power_the_tree_is_that_of_an_undisturbed_run() {
    Plan { kills: 1, power: 3, cuts: 0, seed: 2, is_long: false }.run("power");
}

// S-101
#[test]
fn when_the_line_is_cut_or_reset_the_tree_is_that_of_an_undisturbed_run() {
    Plan { kills: 1, power: 0, cuts: 4, seed: 3, is_long: false }.run("line");
}
