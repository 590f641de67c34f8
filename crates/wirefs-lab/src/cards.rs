//! A large file read from a node over TLS: over one network card, over two, and with one of the two cut during the
//! read.
//!
//! Each read has new nodes, so that nothing is cached. The configurations alternate within a run.
//!
//! ```text
//! server ══ two cards, each with a limited rate ══ client, which reads /net/server/large
//! ```

mod node_pair;
mod report;

pub use report::to_section;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::LabError;
use node_pair::NodePair;

/// The maximum number of runs.
pub const RUNS_MAX: usize = 100;

/// The cards over which the file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardUse {
    /// The first card; the nodes use no other.
    One,
    /// Both.
    Both,
    /// Both, one of which is cut after a quarter of the file.
    BothOneCut,
}

impl CardUse {
    /// All configurations, in the order of reports.
    pub const ALL: [CardUse; 3] = [CardUse::One, CardUse::Both, CardUse::BothOneCut];

    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            CardUse::One => "one card",
            CardUse::Both => "two cards",
            CardUse::BothOneCut => "two cards, one cut at a quarter",
        }
    }
}

/// The parameters of one measurement.
#[derive(Clone, Debug)]
pub struct CardsPlan {
    /// The rates of both cards, in bits per second.
    pub rates_bits: [u64; 2],
    /// The size of the file, in bytes.
    pub bytes: usize,
    /// The number of runs.
    pub runs: usize,
    /// The `wirefs` program.
    pub wirefs: PathBuf,
    /// A directory for files and mount points; must not exist yet.
    pub scratch: PathBuf,
    /// Set by a signal: the measurement then fails with [`LabError::Interrupted`] and cleans up.
    pub stop: Arc<AtomicBool>,
}

/// One read of the whole file.
#[derive(Clone, Copy, Debug)]
pub struct CardsSample {
    /// The cards of the read.
    pub card_use: CardUse,
    /// The elapsed time.
    pub elapsed: Duration,
    /// Bytes received over each card during the read.
    pub received_bytes: [u64; 2],
}

impl CardsPlan {
    /// Measures everything; calls `progress` with a line after each read.
    ///
    /// # Errors
    /// Fails with the first error of setup or of a read, and if a byte is wrong.
    pub fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<Vec<CardsSample>, LabError> {
        let pair = NodePair::new(self)?;
        let mut samples = Vec::new();
        for card_use in (0..self.runs).flat_map(|_| CardUse::ALL) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let sample = pair.read(card_use)?;
            progress(&format!(
                "{}: {:.2} s, {:?} bytes",
                card_use.name(),
                sample.elapsed.as_secs_f64(),
                sample.received_bytes
            ));
            samples.push(sample);
        }
        Ok(samples)
    }
}
