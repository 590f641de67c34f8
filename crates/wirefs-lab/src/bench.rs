//! Workloads measured on several peers, interleaved, over links of several lengths.
//!
//! For each length a new pair of hosts; in it, for each run, each workload on each peer in turn, so that a change of
//! the machine's mood meets all of them alike. What is reported is the median over the runs.

mod environment;
mod measure;
pub mod mount;
mod peer;
mod report;
mod samples;
mod scene;

pub use environment::{commit, first_line, machine};
pub use measure::work;
pub use peer::Peer;
pub use report::{Markers, Page, Section, to_json, to_markdown};
pub use samples::{Outcome, Sample, Samples, Series};

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::LabError;
use crate::profile::LinkProfile;
use crate::program;
use crate::workload::{Bulk, Place, Scale, Start, Step, Workload};
use measure::Task;
use scene::Scene;

/// The most runs of one benchmark.
pub const RUNS_MAX: usize = 100;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Round-trip times; zero without rate or loss is a plain veth pair.
    pub rtts: Vec<Duration>,
    /// The most that a TCP socket's receive and send buffers grow to, in bytes; `None`: as large as a host of today has them.
    pub buffer_bytes: Option<u64>,
    /// Everything else about the link.
    pub profile: LinkProfile,
    /// Which workloads, in order.
    pub workloads: Vec<&'static Workload>,
    /// Which peers, `local` among them: the others are compared with it.
    pub peers: Vec<Peer>,
    /// How often.
    pub runs: usize,
    /// Whether `scale` was made from [`Scale::SHORT`].
    pub short: bool,
    /// How much of everything.
    pub scale: Scale,
    /// Whether steps that begin with a long pause are measured.
    pub pauses: bool,
    /// A step that takes longer is stopped, and reported as such.
    pub limit: Duration,
    /// How long the trees of a run are left alone before they are mounted.
    pub rest: Duration,
    /// The `wirefs` program.
    pub wirefs: PathBuf,
    /// The `wirefs-lab` program, which runs the workloads.
    pub wirefs_lab: PathBuf,
    /// A directory, not there yet, for trees and mount points.
    pub scratch: PathBuf,
    /// Set from outside, it ends the benchmark soon and in order.
    pub stop: Arc<AtomicBool>,
}

impl Plan {
    /// Fails when a program that the plan needs is not on the machine.
    ///
    /// # Errors
    /// [`LabError::MissingProgram`], which says how to install it.
    pub fn check_programs(&self) -> Result<(), LabError> {
        let by_workloads = self.workloads.iter().flat_map(|workload| workload.programs);
        let by_peers = self.peers.iter().flat_map(|peer| peer.programs());
        for (name, package) in by_workloads.chain(by_peers) {
            program::find(name, package)?;
        }
        if self.peers.iter().any(|peer| peer.is_wirefs()) && !self.wirefs.is_file() {
            return Err(LabError::MissingProgram {
                program: self.wirefs.display().to_string(),
                remedy: "build it: cargo build --release -p wirefs".to_owned(),
            });
        }
        Ok(())
    }

    /// Measures everything; `tell` hears a line as each step is done.
    ///
    /// # Errors
    /// The first thing that cannot be set up. A step that fails is an [`Outcome`], not an error.
    pub fn run(&self, tell: &mut dyn FnMut(&str)) -> Result<Samples, LabError> {
        self.check_programs()?;
        fs::create_dir(&self.scratch)
            .map_err(|error| LabError::io(format!("make {}", self.scratch.display()), error))?;
        let _scratch = Scratch(&self.scratch);
        let mut samples = Samples::default();
        for rtt in &self.rtts {
            let scene = Scene::new(self, *rtt)?;
            for _ in 0..self.runs {
                for turn in self.prepare(*rtt, &samples, tell)? {
                    self.run_one(&scene, turn, &mut samples, tell)?;
                }
            }
        }
        Ok(samples)
    }

    /// Makes what one run of each workload on each peer is measured on, and leaves it alone for a while.
    fn prepare(
        &self,
        rtt: Duration,
        samples: &Samples,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Vec<Turn>, LabError> {
        let pairs =
            self.workloads.iter().flat_map(|workload| self.peers.iter().map(move |peer| (*workload, *peer)));
        let mut prepared = Vec::new();
        for (workload, peer) in pairs {
            let is_needed = peer != Peer::Bare && !self.steps(rtt, workload, peer, samples).is_empty();
            let grounds = is_needed.then(|| Grounds::new(self, workload)).transpose()?;
            prepared.push(Turn { workload, peer, grounds });
        }
        if self.peers.iter().any(|peer| peer.is_wirefs()) && !self.rest.is_zero() {
            tell(&format!("the trees rest for {} s", self.rest.as_secs()));
            let until = Instant::now() + self.rest;
            while Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
                thread::sleep(
                    Duration::from_millis(200).min(until.saturating_duration_since(Instant::now())),
                );
            }
        }
        if self.stop.load(Ordering::Relaxed) { Err(LabError::Interrupted) } else { Ok(prepared) }
    }

    /// Runs one workload on one peer, once.
    fn run_one(
        &self,
        scene: &Scene<'_>,
        Turn { workload, peer, grounds }: Turn,
        samples: &mut Samples,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let steps = self.steps(scene.rtt(), workload, peer, samples);
        let mut record = |step: &'static Step, outcome: Outcome| {
            tell(&format!(
                "{} ms  {} {}  {}: {outcome}",
                scene.rtt().as_millis(),
                workload.name,
                step.name,
                peer.name()
            ));
            samples.add(Series { rtt: scene.rtt(), workload, step, peer }, outcome);
        };
        if peer == Peer::Bare {
            for step in steps {
                let bytes = match step.bulk {
                    Some(Bulk::Tree) => tree_bytes(&Grounds::new(self, workload)?.export)?,
                    Some(Bulk::Down | Bulk::Up) | None => self.scale.bulk_bytes,
                };
                record(step, scene.transfer(step, bytes)?);
            }
            return Ok(());
        }
        let Some(grounds) = grounds.filter(|_| !steps.is_empty()) else { return Ok(()) };
        let mut mount = scene.mount(peer, &grounds.export)?;
        for (nth, step) in steps.into_iter().enumerate() {
            if nth > 0 && step.start == Start::Cold {
                drop(mount);
                mount = scene.mount(peer, &grounds.export)?;
            }
            if nth == 0 || step.start == Start::Cold {
                scene.settle()?;
            }
            match step.start {
                Start::Warm if nth == 0 => scene.list(mount.path()),
                Start::Cold | Start::Warm => {}
                Start::After(pause) => thread::sleep(pause),
            }
            let place =
                Place { tree: mount.path().to_owned(), local: grounds.local.clone(), scale: self.scale };
            let outcome = scene.measure(&Task { workload, step, place: &place, limit: self.limit })?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let goes_on = matches!(outcome, Outcome::Done(_));
            record(step, outcome);
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// The steps of a workload that are done: up to one that was stopped at the limit, which would be again.
    fn steps(
        &self,
        rtt: Duration,
        workload: &'static Workload,
        peer: Peer,
        samples: &Samples,
    ) -> Vec<&'static Step> {
        let steps = workload.steps.iter().filter(|step| self.takes(step, peer));
        steps.take_while(|step| !samples.was_stopped(rtt, workload, step, peer)).collect()
    }

    fn takes(&self, step: &Step, peer: Peer) -> bool {
        let pause_fits = self.pauses || !matches!(step.start, Start::After(_));
        pause_fits && (peer != Peer::Bare || step.bulk.is_some())
    }
}

/// The bytes of all files below a directory.
fn tree_bytes(root: &Path) -> Result<u64, LabError> {
    let failed = |error| LabError::io(format!("look at {}", root.display()), error);
    let (mut bytes, mut waiting) = (0, vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let found = entry.metadata().map_err(failed)?;
            if found.is_dir() {
                waiting.push(entry.path());
            } else {
                bytes += found.len();
            }
        }
    }
    Ok(bytes)
}

/// Grounds with more than this, in bytes, are removed at once.
const KEPT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// So many are kept at most.
const KEPT_MAX: usize = 512;

/// The directories of one run of one workload. Large ones are gone when it is done; small ones stay until the benchmark ends: where many
/// files were just removed, ext4 looks at each of their inodes again for each file that is made (`recently_deleted`), for minutes, and that
/// would be measured.
struct Grounds {
    root: PathBuf,
    /// The server's directory.
    export: PathBuf,
    /// The client's own.
    local: PathBuf,
    may_stay: bool,
}

/// One workload on one peer, and what it is measured on where anything is.
struct Turn {
    workload: &'static Workload,
    peer: Peer,
    grounds: Option<Grounds>,
}

impl Grounds {
    fn new(plan: &Plan, workload: &Workload) -> Result<Grounds, LabError> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = plan.scratch.join(format!("grounds-{number}"));
        let may_stay = number < KEPT_MAX;
        let grounds = Grounds { export: root.join("export"), local: root.join("local"), root, may_stay };
        for directory in [&grounds.export, &grounds.local] {
            fs::create_dir_all(directory)
                .map_err(|error| LabError::io(format!("make {}", directory.display()), error))?;
        }
        let place = Place { tree: grounds.export.clone(), local: grounds.local.clone(), scale: plan.scale };
        (workload.prepare)(&place)?;
        Ok(grounds)
    }
}

impl Drop for Grounds {
    fn drop(&mut self) {
        let is_small = tree_bytes(&self.root).is_ok_and(|bytes| bytes <= KEPT_BYTES_MAX);
        if !(self.may_stay && is_small) {
            // What cannot be removed is removed with the whole scratch directory, or shows up there.
            fs::remove_dir_all(&self.root).ok();
        }
    }
}

/// The directory of a whole benchmark, gone when it is done.
struct Scratch<'a>(&'a PathBuf);

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        fs::remove_dir_all(self.0).ok();
    }
}
