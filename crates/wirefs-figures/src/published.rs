//! Replicas of two published evaluations. SNFS (2017) writes a file in pieces of 1 KiB while its server is killed. An
//! AFS-like system opens, reads, writes and closes files of several sizes, with and without prefetching.
//!
//! Each measurement has a mount of its own. Each run starts with another peer, so that load on the machine affects all
//! peers alike.
//!
//! ```text
//! server, killed and restarted ══ a plain veth pair, or an emulated link ══ client
//! ```

mod access;
mod batch;
mod peer;
mod plot;
mod report;
mod test_bed;
mod writing;

pub use access::{AccessSample, CallTimes, DirectoryVisit};
pub use batch::{BatchOutcome, BatchWriter, CrashPoint};
pub use peer::PublishedPeer;
pub use report::{plots, to_sections};
pub use writing::BatchSample;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use test_bed::PublishedTestBed;
use wirefs_lab::LabError;

/// The maximum number of runs.
pub const RUNS_MAX: usize = 100;
/// KiB of the batches, as in SNFS.
pub const BATCHES: [usize; 4] = [1 << 10, 5 << 10, 10 << 10, 15 << 10];
/// KiB of the files that are opened, read, written and closed. The source's plots have no numbers.
pub const SIZES: [usize; 5] = [64, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// The number of files in the visited directory.
pub const FILES: usize = 40;
/// KiB of each of these files.
pub const FILE_PIECES: usize = 16;

/// The parameters of one measurement.
#[derive(Clone, Debug)]
pub struct PublishedPlan {
    /// The number of runs.
    pub runs: usize,
    /// KiB of the file that is written while the server is killed.
    pub killed: usize,
    /// KiB of the batches.
    pub batches: Vec<usize>,
    /// KiB of the files of the access measurements.
    pub sizes: Vec<usize>,
    /// The round-trip times of the access measurements; zero is a plain veth pair.
    pub rtts: Vec<Duration>,
    /// Whether sshfs is installed.
    pub has_sshfs: bool,
    /// The `wirefs` program.
    pub wirefs: PathBuf,
    /// The `wirefs-figures` program, which writes the batches.
    pub program: PathBuf,
    /// A directory for files and mount points; must not exist yet.
    pub scratch: PathBuf,
    /// Set by a signal: the measurement then fails with [`LabError::Interrupted`] and cleans up.
    pub stop: Arc<AtomicBool>,
}

/// All measured samples.
#[derive(Clone, Debug, Default)]
pub struct PublishedSamples {
    /// Batches: files written in small pieces.
    pub batches: Vec<BatchSample>,
    /// Calls on files of several sizes.
    pub accesses: Vec<AccessSample>,
    /// Visits of a directory.
    pub visits: Vec<DirectoryVisit>,
}

impl PublishedPlan {
    /// Returns the peers that write a file while the server is killed.
    pub(crate) fn killed_peers(&self) -> Vec<PublishedPeer> {
        self.with_sshfs(&[
            PublishedPeer::Local,
            PublishedPeer::Wirefs,
            PublishedPeer::NoJournal,
            PublishedPeer::Commit,
        ])
    }

    /// Returns the peers that write batches.
    pub(crate) fn batch_peers(&self) -> Vec<PublishedPeer> {
        self.with_sshfs(&[
            PublishedPeer::Local,
            PublishedPeer::Wirefs,
            PublishedPeer::NoJournal,
            PublishedPeer::Strict,
        ])
    }

    /// Returns the peers of the access measurements.
    pub(crate) fn access_peers(&self) -> Vec<PublishedPeer> {
        self.with_sshfs(&[
            PublishedPeer::Local,
            PublishedPeer::Wirefs,
            PublishedPeer::NoJournal,
            PublishedPeer::Session,
        ])
    }

    /// Returns the peers that visit a directory.
    pub(crate) fn visit_peers(&self) -> Vec<PublishedPeer> {
        self.with_sshfs(&[PublishedPeer::Local, PublishedPeer::Wirefs, PublishedPeer::NoPrefetch])
    }

    fn with_sshfs(&self, peers: &[PublishedPeer]) -> Vec<PublishedPeer> {
        let (first, rest) = peers.split_at(1);
        let sshfs = self.has_sshfs.then_some(PublishedPeer::Sshfs);
        first.iter().copied().chain(sshfs).chain(rest.iter().copied()).collect()
    }

    /// Measures everything; calls `progress` with a line after each part of a run.
    ///
    /// # Errors
    /// Fails with the first error of setup, if a byte is wrong, and if the server was killed at the wrong moment.
    pub fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<PublishedSamples, LabError> {
        test_bed::check_programs(self)?;
        let mut samples = PublishedSamples::default();
        self.write_all(&mut samples.batches, progress)?;
        for &rtt in &self.rtts {
            self.access_all(rtt, &mut samples, progress)?;
        }
        Ok(samples)
    }

    fn write_all(
        &self,
        samples: &mut Vec<BatchSample>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let mut test_bed = PublishedTestBed::new(self, Duration::ZERO)?;
        let killed = self.killed_peers().into_iter().flat_map(|peer| {
            let crashes = CrashPoint::ALL
                .into_iter()
                .filter(move |it| *it == CrashPoint::Never || peer.outlives_servers());
            crashes.map(move |crash| (peer, self.killed, crash))
        });
        let batches = self
            .batches
            .iter()
            .flat_map(|pieces| self.batch_peers().into_iter().map(|peer| (peer, *pieces, CrashPoint::Never)));
        // The two lists overlap; a measurement that is in both runs once.
        let mut measurements: Vec<(PublishedPeer, usize, CrashPoint)> = Vec::new();
        for measurement in killed.chain(batches) {
            if !measurements.contains(&measurement) {
                measurements.push(measurement);
            }
        }
        for run in 0..self.runs {
            for &(peer, pieces, crash) in rotated(&measurements, run) {
                self.check_interrupt()?;
                let batch = test_bed.write(self, peer, pieces, crash)?;
                progress(&batch.to_string());
                samples.push(batch);
            }
        }
        Ok(())
    }

    fn access_all(
        &self,
        rtt: Duration,
        samples: &mut PublishedSamples,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let test_bed = PublishedTestBed::new(self, rtt)?;
        test_bed.prepare(&self.sizes)?;
        for run in 0..self.runs {
            for &pieces in &self.sizes {
                for &peer in rotated(&self.access_peers(), run) {
                    self.check_interrupt()?;
                    samples.accesses.push(test_bed.access(rtt, peer, pieces)?);
                }
            }
            for &peer in rotated(&self.visit_peers(), run) {
                self.check_interrupt()?;
                samples.visits.push(test_bed.visit(rtt, peer)?);
            }
            progress(&format!("RTT {} ms, run {}", rtt.as_millis(), run + 1));
        }
        Ok(())
    }

    fn check_interrupt(&self) -> Result<(), LabError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(LabError::Interrupted),
            false => Ok(()),
        }
    }
}

/// Returns all elements, rotated by the number of the run.
fn rotated<T>(all: &[T], run: usize) -> impl Iterator<Item = &T> {
    let first = run.checked_rem(all.len()).unwrap_or_default();
    all.iter().cycle().skip(first).take(all.len())
}
