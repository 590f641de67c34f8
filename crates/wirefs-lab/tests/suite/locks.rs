//! Programs exclude each other by locks and by names of locks, in each mode: on one mount, on two, and at the server.
//!
//! ```text
//!   programs ── mount a ──┐
//!                         ├── unix socket, or a link of 10 ms ── wirefs serve ── export ── programs
//!   programs ── mount b ──┘
//! ```
//! A row of the table is a mode, with and without a journal, at one round-trip time; a column is a program. Each cell counts the runs in
//! which a guarantee did not hold.
//!
//! `WIREFS_LOCKS_RUNS` sets how many runs there are, `WIREFS_LOCKS_ONLY` names modes and programs that are run alone: `make locks`.

mod counters;
mod names;
mod ranges;
mod removed;
mod turns;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use wirefs_lab::LinkProfile;

use crate::site::Site;

/// Cells that run at the same time. Their programs mostly wait.
const CELLS_AT_ONCE: usize = 8;
const RTTS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(10)];

/// A mode, with the options of its mounts.
struct Mode {
    name: &'static str,
    options: &'static [&'static str],
    /// The mode guarantees that the holder of a lock sees what earlier holders wrote (S-40).
    locks_contents: bool,
}

const MODES: [Mode; 8] = [
    Mode { name: "lease", options: &["--mode", "lease", "--journal"], locks_contents: true },
    Mode { name: "lease-no-journal", options: &["--mode", "lease", "--no-journal"], locks_contents: true },
    Mode { name: "window", options: &["--mode", "window"], locks_contents: true },
    // Each open file of this mode is a copy.
    Mode { name: "session", options: &["--mode", "session"], locks_contents: false },
    Mode { name: "lazy", options: &["--mode", "lazy"], locks_contents: true },
    Mode { name: "commit", options: &["--mode", "commit"], locks_contents: true },
    Mode { name: "direct", options: &["--mode", "direct"], locks_contents: true },
    Mode { name: "strict", options: &["--mode", "strict"], locks_contents: true },
];

/// Mounts of one export, and the amount of work.
struct Place<'a> {
    site: &'a Site,
    mount: &'a Path,
    /// A second mount. Without it the first one is the only one.
    other: Option<&'a Path>,
    rounds: u64,
    seed: u64,
    /// See [`Mode::locks_contents`].
    locks_contents: bool,
}

/// Runs a program; `Err` describes the fault.
type Check = fn(&Place) -> Result<(), String>;

/// A program, and where it is run.
struct Program {
    name: &'static str,
    check: Check,
    needs_other: bool,
    /// The program is of no use without S-40.
    needs_contents: bool,
}

const PROGRAMS: [Program; 9] = [
    Program { name: "counters", check: counters::add, needs_other: false, needs_contents: false },
    Program { name: "turns", check: turns::take, needs_other: false, needs_contents: true },
    Program { name: "create", check: names::create, needs_other: false, needs_contents: false },
    Program { name: "mkdir", check: names::make_directory, needs_other: false, needs_contents: false },
    Program { name: "link", check: names::link, needs_other: false, needs_contents: false },
    Program { name: "removed", check: removed::wait, needs_other: false, needs_contents: false },
    Program { name: "ranges", check: ranges::ask, needs_other: false, needs_contents: false },
    Program { name: "counters-2", check: counters::add, needs_other: true, needs_contents: false },
    Program { name: "ranges-2", check: ranges::ask, needs_other: true, needs_contents: false },
];

/// A row of the table.
struct Row {
    mode: &'static Mode,
    rtt: Duration,
    /// How often a program does its work in one run.
    rounds: u64,
    /// Of each program that was run: the runs with a fault.
    faulty: BTreeMap<&'static str, u64>,
    faults: Vec<String>,
}

impl Row {
    fn new(mode: &'static Mode, rtt: Duration, runs: u64) -> Row {
        // Each round takes longer on a longer line, and the ordinary tests have one short run.
        let rounds = if rtt.is_zero() { 40 } else { 12 } / if runs == 1 { 2 } else { 1 };
        Row { mode, rtt, rounds, faulty: BTreeMap::new(), faults: Vec::new() }
    }

    /// Fills the row.
    fn run(mut self, runs: u64) -> Row {
        let (rtt, name) = (self.rtt, format!("locks-{}-{}", self.mode.name, self.rtt.as_millis()));
        let site = if rtt.is_zero() {
            Site::unix(&name)
        } else {
            Site::tls_with_two_clients(&name, LinkProfile::rtt(rtt))
        };
        for run in 0..runs {
            let mount = site.mount("a", self.mode.options);
            self.run_programs(&site, &mount, None, run);
            let other = self.mount_other(&site);
            self.run_programs(&site, &mount, Some(&other), run);
            site.unmount(&other);
            site.unmount(&mount);
        }
        self
    }

    fn mount_other(&self, site: &Site) -> PathBuf {
        match self.rtt.is_zero() {
            true => site.mount("b", self.mode.options),
            false => site.mount_other("b", self.mode.options),
        }
    }

    fn run_programs(&mut self, site: &Site, mount: &Path, other: Option<&Path>, run: u64) {
        let place = Place {
            site,
            mount,
            other,
            rounds: self.rounds,
            seed: run,
            locks_contents: self.mode.locks_contents,
        };
        let names = || PROGRAMS.iter().map(|program| program.name);
        let wanted = PROGRAMS
            .iter()
            .filter(|program| program.needs_other == other.is_some() && !is_left_out(program.name, names()));
        for program in wanted.filter(|program| self.mode.locks_contents || !program.needs_contents) {
            let faulty = self.faulty.entry(program.name).or_default();
            if let Err(fault) = (program.check)(&place) {
                *faulty += 1;
                let (mode, rtt, name) = (self.mode.name, self.rtt.as_millis(), program.name);
                self.faults.push(format!("{mode}, {rtt} ms, {name}, run {run}: {fault}"));
            }
        }
    }

    fn line(&self, runs: u64) -> String {
        let mut line = format!("{:<18}{:>5} ms", self.mode.name, self.rtt.as_millis());
        for program in &PROGRAMS {
            let cell =
                self.faulty.get(program.name).map_or_else(|| "–".into(), |faulty| format!("{faulty}/{runs}"));
            write!(line, "{cell:>12}").unwrap();
        }
        line
    }
}

/// Whether `WIREFS_LOCKS_ONLY` names one of `all` and not this one. Words are separated by commas.
fn is_left_out(name: &str, mut all: impl Iterator<Item = &'static str>) -> bool {
    let only = std::env::var("WIREFS_LOCKS_ONLY").unwrap_or_default();
    let is_named = |name: &str| only.split(',').any(|word| word == name);
    !is_named(name) && all.any(is_named)
}

/// Runs all programs in each mode at these round-trip times.
fn table(runs: u64) -> Vec<Row> {
    let names = || MODES.iter().map(|mode| mode.name);
    let wanted = MODES.iter().filter(|mode| !is_left_out(mode.name, names()));
    let cells = wanted.flat_map(|mode| RTTS.map(|rtt| Row::new(mode, rtt, runs)));
    let (left, done) = (Mutex::new(cells.enumerate()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..CELLS_AT_ONCE {
            scope.spawn(|| {
                let next = || left.lock().unwrap().next();
                while let Some((number, row)) = next() {
                    let row = row.run(runs);
                    done.lock().unwrap().push((number, row));
                }
            });
        }
    });
    let mut rows = done.into_inner().unwrap();
    rows.sort_by_key(|(number, _)| *number);
    rows.into_iter().map(|(_, row)| row).collect()
}

// S-40, S-41, S-50, S-54, S-42, S-51, S-52
#[test]
fn programs_exclude_each_other_in_each_mode() {
    let runs = std::env::var("WIREFS_LOCKS_RUNS").map_or(1, |text| text.parse().expect("a number of runs"));
    let rows = table(runs);
    let head: String = PROGRAMS.iter().map(|program| format!("{:>12}", program.name)).collect();
    println!("\nruns with a fault of all runs\n{:<18}{:>8}{head}", "mode", "RTT");
    rows.iter().for_each(|row| println!("{}", row.line(runs)));
    println!(
        "mode session promises nothing of contents under locks (S-40): no turns, and its counters only have to end"
    );
    let faults: Vec<&String> = rows.iter().flat_map(|row| &row.faults).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
