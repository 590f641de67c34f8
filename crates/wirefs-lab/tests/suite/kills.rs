//! Kills: the process of the mount, that of the server, or both end at random moments (`kill -9`) while a program changes the tree.
//!
//! ```text
//!   program ── mnt ── wirefs mount ── socket ── wirefs serve ── export
//!      |                  killed                   killed
//!      └── reference: the same, done to a plain directory
//! ```
//! Where only the server was killed, the program sees no error. Where the mount was, it does the step that failed once more, in the next
//! mount; all before it must be there. In the end the tree is that of an undisturbed run.
//!
//! `WIREFS_KILLS` sets how many there are, `WIREFS_KILLS_SEED` which; `make kills` does 500.

mod work;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use wirefs_lab::random::Random;

use crate::site::{Site, wait_for};
use crate::snapshot::{Looks, Snapshot};
use work::{Step, Steps};

/// How many there are when nothing else is said.
const KILLS: u64 = 8;
/// Steps of the program between two kills, at most.
const STEPS_BETWEEN: u64 = 60;
/// How long callers wait for a server: longer than any test.
const OPTIONS: [&str; 3] = ["--journal", "--deadline", "300s"];
/// What is compared in another way: a database is the same whatever order its pages have.
const LOOKS: Looks<'_> = Looks { mtimes: false, except: &[work::DATABASE] };

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// What the program and who kills know of each other.
#[derive(Default)]
struct Course {
    /// Steps that were begun.
    begun: AtomicU64,
    /// The step that was begun last takes locks.
    locks: AtomicBool,
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

/// Does steps until it is told to end; tells how many.
fn program(course: &Course, mount: &Path, reference: &Path, seed: u64) -> u64 {
    let mut steps = Steps::new(seed);
    let mut done = 0;
    while !course.is_over.load(Ordering::SeqCst) {
        for step in steps.next_round() {
            one(course, mount, reference, &step, done);
            done += 1;
        }
    }
    done
}

/// Does one step in the mount, as often as it takes, and in the reference.
fn one(course: &Course, mount: &Path, reference: &Path, step: &Step, number: u64) {
    course.locks.store(matches!(step, Step::Insert(_)), Ordering::SeqCst);
    course.begun.fetch_add(1, Ordering::SeqCst);
    let mut is_again = false;
    loop {
        let before = course.mounted.load(Ordering::SeqCst);
        match step.apply(mount, is_again) {
            Ok(()) => break,
            Err(error) => {
                assert!(course.is_between(before), "step {number}, {step:?}, again {is_again}: {error}")
            }
        }
        wait_for("the next mount", || course.mounted.load(Ordering::SeqCst) > before);
        is_again = true;
    }
    step.apply(reference, false).unwrap_or_else(|error| panic!("step {number}, {step:?} here: {error}"));
    if is_again {
        same(mount, reference, &format!("after step {number}, {step:?}"));
    }
}

fn same(tree: &Path, reference: &Path, when: &str) {
    Snapshot::of(tree, LOOKS).assert_same(&Snapshot::of(reference, LOOKS), when);
    assert_eq!(work::rows(tree), work::rows(reference), "{when}");
}

/// A server that is started again whenever it ends.
///
/// By a shell of its own: a process that this one starts closes what this one has open in the mount before it becomes a server, and would
/// wait for that server.
struct Kept<'a> {
    site: &'a Site,
    shell: Child,
}

impl Kept<'_> {
    /// In place of the site's own.
    fn of(site: &Site) -> Kept<'_> {
        site.kill_server();
        // The one mount is the only one that was promised anything, so nothing has to wait until others believe it no longer.
        let script = format!(
            "while :; do rm -rf server/.local/state/wirefs/exports; : >serving; ./wirefs serve export --listen {} >serving 2>>errors & \
             echo $! >next; mv next pid; wait $!; done",
            site.url()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(site.path("")).process_group(0);
        shell.env("HOME", site.path("server")).env("XDG_RUNTIME_DIR", site.path("client/run"));
        let shell = shell.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let kept = Kept { site, shell };
        wait_for("the server", || kept.listens().is_some());
        kept
    }

    /// Its process, once it listens.
    fn listens(&self) -> Option<Pid> {
        let is_ready = fs::read(self.site.path("serving")).is_ok_and(|line| !line.is_empty());
        let pid = fs::read_to_string(self.site.path("pid")).ok().filter(|_| is_ready)?;
        Pid::from_raw(pid.trim().parse().ok()?)
    }

    fn kill(&self) {
        let killed = self.listens().unwrap();
        kill_process(killed, Signal::KILL).unwrap();
        wait_for("another server", || self.listens().is_some_and(|pid| pid != killed));
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        // It may have ended.
        kill_process_group(Pid::from_child(&self.shell), Signal::KILL).ok();
        self.shell.wait().ok();
    }
}

/// The process that serves the mount.
fn process(site: &Site, mount: &Path) -> Pid {
    let status = site.wirefs(&["status", "--json", mount.to_str().unwrap()]).succeeds();
    let number = status.split("\"process\":").nth(1).unwrap();
    let digits: String = number.trim_start().chars().take_while(char::is_ascii_digit).collect();
    Pid::from_raw(digits.parse().unwrap()).unwrap()
}

fn mount_again(site: &Site, mount: &Path) {
    let text = mount.to_str().unwrap();
    wait_for("the end of the mount", || {
        site.wirefs(&["umount", "-f", text]);
        !site.is_mounted(mount)
    });
    site.mount("mnt", &OPTIONS);
}

/// Kills one of them, or both, and waits until both are there again.
fn kill(site: &Site, server: &Kept<'_>, mount: &Path, course: &Course, dice: &mut Random) {
    let victim = dice.below(10);
    let served_by = process(site, mount);
    thread::sleep(Duration::from_micros(dice.below(4_000)));
    if victim < 5 {
        return server.kill();
    }
    course.killed.fetch_add(1, Ordering::SeqCst);
    if victim == 8 {
        server.kill();
    }
    kill_process(served_by, Signal::KILL).unwrap();
    // A dead mount's locks fall after 90 s, or with the server's process.
    if victim == 9 || course.locks.load(Ordering::SeqCst) {
        server.kill();
    }
    mount_again(site, mount);
    course.mounted.fetch_add(1, Ordering::SeqCst);
}

// S-95
#[test]
fn whoever_is_killed_and_whenever_the_tree_is_that_of_an_undisturbed_run() {
    let (kills, seed) = (setting("WIREFS_KILLS", KILLS), setting("WIREFS_KILLS_SEED", 1));
    println!("{kills} kills of seed {seed}");
    let site = Site::unix("kills");
    let server = Kept::of(&site);
    let mount = site.mount("mnt", &OPTIONS);
    let reference = site.path("reference");
    fs::create_dir(&reference).unwrap();
    let (course, mut dice) = (Course::default(), Random::new(seed));
    let steps = thread::scope(|scope| {
        let program = scope.spawn(|| program(&course, &mount, &reference, seed));
        let over = Over(&course);
        for number in 1..=kills {
            let until = course.begun.load(Ordering::SeqCst) + 1 + dice.below(STEPS_BETWEEN);
            wait_for("the program to be at work", || {
                course.begun.load(Ordering::SeqCst) >= until || program.is_finished()
            });
            if program.is_finished() {
                break;
            }
            kill(&site, &server, &mount, &course, &mut dice);
            println!("kill {number} of seed {seed}: step {}", course.begun.load(Ordering::SeqCst));
        }
        drop(over);
        program.join().unwrap_or_else(|_| panic!("seed {seed}: the program has failed"))
    });
    println!("{steps} steps");
    same(&mount, &reference, &format!("in the end, seed {seed}"));
    site.unmount(&mount);
    same(site.export(), &reference, &format!("at the server, seed {seed}"));
    assert_eq!(site.wirefs(&["quarantine", "list", "--json"]).succeeds().trim(), "[]", "seed {seed}");
}
