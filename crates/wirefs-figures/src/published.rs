//! What two earlier systems published of themselves, measured again beside their figures: SNFS (2017), which writes a file in pieces of
//! 1 KiB and has its server killed meanwhile, and an AFS-like system, which opens, reads, writes and closes files of several sizes, with
//! and without fetching ahead.
//!
//! Each measurement has a mount of its own. Within a run all peers take their turn, in another order each run, so that a change of the
//! machine's mood meets all of them alike.
//!
//! ```text
//! server, killed and started again ══ a plain pair, or a link of some length ══ client
//! ```

mod access;
mod batch;
mod figure;
mod grounds;
mod peer;
mod report;
mod writing;

pub use access::{Access, Calls, Visit};
pub use batch::{Batch, Crash, Written};
pub use peer::Peer;
pub use report::{figures, to_sections};
pub use writing::Writing;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use grounds::Grounds;
use wirefs_lab::LabError;

/// The most runs of one measurement.
pub const RUNS_MAX: usize = 100;
/// KiB of the batches, as SNFS has them.
pub const BATCHES: [usize; 4] = [1 << 10, 5 << 10, 10 << 10, 15 << 10];
/// KiB of the files that are opened, read, written and closed. The source's figures have no numbers.
pub const SIZES: [usize; 5] = [64, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// Files of the directory that is visited.
pub const FILES: usize = 40;
/// KiB of each of these.
pub const FILE_PIECES: usize = 16;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How often.
    pub runs: usize,
    /// KiB of the file that is written while servers are killed.
    pub killed: usize,
    /// KiB of the batches.
    pub batches: Vec<usize>,
    /// KiB of the other files.
    pub sizes: Vec<usize>,
    /// The round-trip times over which these are opened; zero is a plain pair.
    pub rtts: Vec<Duration>,
    /// Whether sshfs is here.
    pub has_sshfs: bool,
    /// The `wirefs` program.
    pub wirefs: PathBuf,
    /// The `wirefs-figures` program, which writes the batches.
    pub program: PathBuf,
    /// A directory, not there yet, for files and mount points.
    pub scratch: PathBuf,
    /// Set from outside, it ends the measurement soon and in order.
    pub stop: Arc<AtomicBool>,
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Files written in small pieces.
    pub writings: Vec<Writing>,
    /// Files of several sizes.
    pub accesses: Vec<Access>,
    /// Directories.
    pub visits: Vec<Visit>,
}

impl Plan {
    /// Those that write a file while servers are killed.
    pub(crate) fn killed_peers(&self) -> Vec<Peer> {
        self.with_sshfs(&[Peer::Local, Peer::Wirefs, Peer::Waiting, Peer::Commit])
    }

    /// Those that write batches.
    pub(crate) fn batch_peers(&self) -> Vec<Peer> {
        self.with_sshfs(&[Peer::Local, Peer::Wirefs, Peer::Waiting, Peer::Strict])
    }

    /// Those that open, read, write and close.
    pub(crate) fn access_peers(&self) -> Vec<Peer> {
        self.with_sshfs(&[Peer::Local, Peer::Wirefs, Peer::Waiting, Peer::Session])
    }

    /// Those that visit a directory.
    pub(crate) fn visit_peers(&self) -> Vec<Peer> {
        self.with_sshfs(&[Peer::Local, Peer::Wirefs, Peer::Unasked])
    }

    fn with_sshfs(&self, peers: &[Peer]) -> Vec<Peer> {
        let (first, rest) = peers.split_at(1);
        let sshfs = self.has_sshfs.then_some(Peer::Sshfs);
        first.iter().copied().chain(sshfs).chain(rest.iter().copied()).collect()
    }

    /// Measures everything; `tell` hears a line as each part of a run is done.
    ///
    /// # Errors
    /// The first thing that cannot be set up; a byte that is wrong; a server that was killed at another moment than was meant.
    pub fn run(&self, tell: &mut dyn FnMut(&str)) -> Result<Samples, LabError> {
        grounds::check_programs(self)?;
        let mut samples = Samples::default();
        self.write_all(&mut samples.writings, tell)?;
        for &rtt in &self.rtts {
            self.access_all(rtt, &mut samples, tell)?;
        }
        Ok(samples)
    }

    fn write_all(&self, writings: &mut Vec<Writing>, tell: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let mut grounds = Grounds::new(self, Duration::ZERO)?;
        let killed = self.killed_peers().into_iter().flat_map(|peer| {
            let crashes =
                Crash::ALL.into_iter().filter(move |it| *it == Crash::None || peer.outlives_servers());
            crashes.map(move |crash| (peer, self.killed, crash))
        });
        let batches = self
            .batches
            .iter()
            .flat_map(|pieces| self.batch_peers().into_iter().map(|peer| (peer, *pieces, Crash::None)));
        // What is both is measured once.
        let mut turns: Vec<(Peer, usize, Crash)> = Vec::new();
        for turn in killed.chain(batches) {
            if !turns.contains(&turn) {
                turns.push(turn);
            }
        }
        for run in 0..self.runs {
            for &(peer, pieces, crash) in rotated(&turns, run) {
                self.goes_on()?;
                let writing = grounds.write(self, peer, pieces, crash)?;
                tell(&writing.to_string());
                writings.push(writing);
            }
        }
        Ok(())
    }

    fn access_all(
        &self,
        rtt: Duration,
        samples: &mut Samples,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let grounds = Grounds::new(self, rtt)?;
        grounds.prepare(&self.sizes)?;
        for run in 0..self.runs {
            for &pieces in &self.sizes {
                for &peer in rotated(&self.access_peers(), run) {
                    self.goes_on()?;
                    samples.accesses.push(grounds.access(rtt, peer, pieces)?);
                }
            }
            for &peer in rotated(&self.visit_peers(), run) {
                self.goes_on()?;
                samples.visits.push(grounds.visit(rtt, peer)?);
            }
            tell(&format!("RTT {} ms, run {}", rtt.as_millis(), run + 1));
        }
        Ok(())
    }

    fn goes_on(&self) -> Result<(), LabError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(LabError::Interrupted),
            false => Ok(()),
        }
    }
}

/// All of them, from another one on each run.
fn rotated<T>(all: &[T], run: usize) -> impl Iterator<Item = &T> {
    let first = run.checked_rem(all.len()).unwrap_or_default();
    all.iter().cycle().skip(first).take(all.len())
}
