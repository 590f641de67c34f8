//! Benchmarks: workloads on several file systems, over links of several round-trip times.
//!
//! Each round-trip time has a new pair of hosts. Within each run, each workload runs on each peer in turn, so that load
//! on the machine affects all peers alike. Reports show the median over the runs.

mod environment;
mod measure;
pub mod mount;
mod peer;
mod report;
mod samples;
mod test_bed;

pub use environment::{commit, first_line, machine};
pub use measure::work;
pub use peer::BenchPeer;
pub use report::{PageMarkers, PageSection, ReportPage, to_json, to_markdown};
pub use samples::{BenchSample, BenchSamples, SeriesKey, StepOutcome};

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::LabError;
use crate::profile::LinkProfile;
use crate::program;
use crate::workload::{BareTransfer, CacheState, Scale, WorkPlace, Workload, WorkloadStep};
use measure::StepTask;
use test_bed::BenchTestBed;

/// The maximum number of runs.
pub const RUNS_MAX: usize = 100;

/// The parameters of one benchmark.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// Round-trip times; zero without rate or loss is a plain veth pair.
    pub rtts: Vec<Duration>,
    /// The maximum of a TCP socket's receive and send buffers, in bytes; `None`: 32 MiB.
    pub buffer_bytes: Option<u64>,
    /// All other properties of the link.
    pub profile: LinkProfile,
    /// The workloads, in order.
    pub workloads: Vec<&'static Workload>,
    /// The compared peers; includes `local`, the baseline.
    pub peers: Vec<BenchPeer>,
    /// The number of runs.
    pub runs: usize,
    /// Whether `scale` was made from [`Scale::SHORT`].
    pub short: bool,
    /// The amount of work per workload.
    pub scale: Scale,
    /// Whether steps with a long pause before them run.
    pub pauses: bool,
    /// The time limit of a step; a slower step is stopped and reported as stopped.
    pub limit: Duration,
    /// The idle time between the creation of the trees of a run and their mounts.
    pub rest: Duration,
    /// The `wirefs` program.
    pub wirefs: PathBuf,
    /// The `wirefs-lab` program, which runs the workloads.
    pub wirefs_lab: PathBuf,
    /// A directory for trees and mount points; must not exist yet.
    pub scratch: PathBuf,
    /// Set by a signal: the benchmark then fails with [`LabError::Interrupted`] and cleans up.
    pub stop: Arc<AtomicBool>,
}

impl BenchPlan {
    /// Checks that the required programs are installed.
    ///
    /// # Errors
    /// [`LabError::MissingProgram`], with the install command.
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

    /// Measures everything; calls `progress` with a line after each step.
    ///
    /// # Errors
    /// Fails with the first error of setup. A failed step is an [`StepOutcome`], not an error.
    pub fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<BenchSamples, LabError> {
        self.check_programs()?;
        fs::create_dir(&self.scratch)
            .map_err(|error| LabError::io(format!("make {}", self.scratch.display()), error))?;
        let _scratch = ScratchDirectory(&self.scratch);
        let mut samples = BenchSamples::default();
        for rtt in &self.rtts {
            let test_bed = BenchTestBed::new(self, *rtt)?;
            for _ in 0..self.runs {
                for prepared in self.prepare(*rtt, &samples, progress)? {
                    self.run_one(&test_bed, prepared, &mut samples, progress)?;
                }
            }
        }
        Ok(samples)
    }

    /// Creates the directories of one run, for all workloads and peers, and waits for the idle time.
    fn prepare(
        &self,
        rtt: Duration,
        samples: &BenchSamples,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<PreparedRun>, LabError> {
        let pairs =
            self.workloads.iter().flat_map(|workload| self.peers.iter().map(move |peer| (*workload, *peer)));
        let mut prepared = Vec::new();
        for (workload, peer) in pairs {
            let needs_directories =
                peer != BenchPeer::Bare && !self.steps(rtt, workload, peer, samples).is_empty();
            let directories = needs_directories.then(|| RunDirectories::new(self, workload)).transpose()?;
            prepared.push(PreparedRun { workload, peer, directories });
        }
        if self.peers.iter().any(|peer| peer.is_wirefs()) && !self.rest.is_zero() {
            progress(&format!("idle for {} s before the mounts", self.rest.as_secs()));
            let until = Instant::now() + self.rest;
            while Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
                thread::sleep(
                    Duration::from_millis(200).min(until.saturating_duration_since(Instant::now())),
                );
            }
        }
        if self.stop.load(Ordering::Relaxed) { Err(LabError::Interrupted) } else { Ok(prepared) }
    }

    /// Runs one workload on one peer once.
    fn run_one(
        &self,
        test_bed: &BenchTestBed<'_>,
        PreparedRun { workload, peer, directories }: PreparedRun,
        samples: &mut BenchSamples,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let steps = self.steps(test_bed.rtt(), workload, peer, samples);
        let mut record = |step: &'static WorkloadStep, outcome: StepOutcome| {
            progress(&format!(
                "{} ms  {} {}  {}: {outcome}",
                test_bed.rtt().as_millis(),
                workload.name,
                step.name,
                peer.name()
            ));
            samples.add(SeriesKey { rtt: test_bed.rtt(), workload, step, peer }, outcome);
        };
        if peer == BenchPeer::Bare {
            for step in steps {
                let bytes = match step.bulk {
                    Some(BareTransfer::Tree) => tree_bytes(&RunDirectories::new(self, workload)?.export)?,
                    Some(BareTransfer::Down | BareTransfer::Up) | None => self.scale.bulk_bytes,
                };
                record(step, test_bed.transfer(step, bytes)?);
            }
            return Ok(());
        }
        let Some(directories) = directories.filter(|_| !steps.is_empty()) else { return Ok(()) };
        let mut mount = test_bed.mount(peer, &directories.export)?;
        for (nth, step) in steps.into_iter().enumerate() {
            if nth > 0 && step.cache == CacheState::Cold {
                drop(mount);
                mount = test_bed.mount(peer, &directories.export)?;
            }
            if nth == 0 || step.cache == CacheState::Cold {
                test_bed.settle()?;
            }
            match step.cache {
                CacheState::Warm if nth == 0 => test_bed.list(mount.path()),
                CacheState::Cold | CacheState::Warm => {}
                CacheState::WarmThenIdle(pause) => thread::sleep(pause),
            }
            let place = WorkPlace {
                tree: mount.path().to_owned(),
                local: directories.local.clone(),
                scale: self.scale,
            };
            let outcome = test_bed.measure(&StepTask { workload, step, place: &place, limit: self.limit })?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let is_done = matches!(outcome, StepOutcome::Done(_));
            record(step, outcome);
            if !is_done {
                break;
            }
        }
        Ok(())
    }

    /// Returns the steps to run: all up to a step that was stopped before, since it would be stopped again.
    fn steps(
        &self,
        rtt: Duration,
        workload: &'static Workload,
        peer: BenchPeer,
        samples: &BenchSamples,
    ) -> Vec<&'static WorkloadStep> {
        let steps = workload.steps.iter().filter(|step| self.has_step(step, peer));
        steps.take_while(|step| !samples.was_stopped(rtt, workload, step, peer)).collect()
    }

    fn has_step(&self, step: &WorkloadStep, peer: BenchPeer) -> bool {
        let pause_fits = self.pauses || !matches!(step.cache, CacheState::WarmThenIdle(_));
        pause_fits && (peer != BenchPeer::Bare || step.bulk.is_some())
    }
}

/// Returns the number of bytes of all files below a directory.
fn tree_bytes(root: &Path) -> Result<u64, LabError> {
    let failed = |error| LabError::io(format!("check {}", root.display()), error);
    let (mut bytes, mut pending) = (0, vec![root.to_owned()]);
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let found = entry.metadata().map_err(failed)?;
            if found.is_dir() {
                pending.push(entry.path());
            } else {
                bytes += found.len();
            }
        }
    }
    Ok(bytes)
}

/// Larger run directories, in bytes, are removed at the end of the run.
const KEPT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// The maximum number of kept run directories.
const KEPT_MAX: usize = 512;

/// The directories of one run of one workload. Large ones are removed after the run, small ones after the benchmark.
/// Reason: for minutes after many removals, ext4 checks each removed inode again at every file creation
/// (`recently_deleted`); that would be measured.
struct RunDirectories {
    root: PathBuf,
    /// The exported directory.
    export: PathBuf,
    /// The client's local directory.
    local: PathBuf,
    may_keep: bool,
}

/// One workload on one peer; a bare transfer has no directories.
struct PreparedRun {
    workload: &'static Workload,
    peer: BenchPeer,
    directories: Option<RunDirectories>,
}

impl RunDirectories {
    fn new(plan: &BenchPlan, workload: &Workload) -> Result<RunDirectories, LabError> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = plan.scratch.join(format!("directories-{number}"));
        let may_keep = number < KEPT_MAX;
        let directories =
            RunDirectories { export: root.join("export"), local: root.join("local"), root, may_keep };
        for directory in [&directories.export, &directories.local] {
            fs::create_dir_all(directory)
                .map_err(|error| LabError::io(format!("make {}", directory.display()), error))?;
        }
        let place = WorkPlace {
            tree: directories.export.clone(),
            local: directories.local.clone(),
            scale: plan.scale,
        };
        (workload.prepare)(&place)?;
        Ok(directories)
    }
}

impl Drop for RunDirectories {
    fn drop(&mut self) {
        let is_small = tree_bytes(&self.root).is_ok_and(|bytes| bytes <= KEPT_BYTES_MAX);
        if !(self.may_keep && is_small) {
            // A leftover is removed with the scratch directory, or stays visible there.
            fs::remove_dir_all(&self.root).ok();
        }
    }
}

/// The directory of the benchmark, removed on drop.
struct ScratchDirectory<'a>(&'a PathBuf);

impl Drop for ScratchDirectory<'_> {
    fn drop(&mut self) {
        fs::remove_dir_all(self.0).ok();
    }
}
