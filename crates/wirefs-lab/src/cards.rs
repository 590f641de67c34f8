//! A large file read from a node over TLS, over one card and over two, and with one of the two cut on the way.
//!
//! Each read has nodes of its own, so nothing is known before. Within a run all take their turn.
//!
//! ```text
//! server ══ two cards, each with a rate ══ client, which reads /net/server/large
//! ```

mod pair;
mod report;

pub use report::to_section;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::LabError;
use pair::Pair;

/// The most runs.
pub const RUNS_MAX: usize = 100;

/// Over what the file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The first card: the nodes are told of no other.
    One,
    /// Both.
    Both,
    /// Both, of which one is cut when a quarter of the file has come.
    BothOneCut,
}

impl Over {
    /// All of them, in the order of reports.
    pub const ALL: [Over; 3] = [Over::One, Over::Both, Over::BothOneCut];

    /// The words for it.
    pub fn name(self) -> &'static str {
        match self {
            Over::One => "one card",
            Over::Both => "two cards",
            Over::BothOneCut => "two cards, one cut at a quarter",
        }
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rates of both cards, in bits a second.
    pub rates_bits: [u64; 2],
    /// How large the file is, in bytes.
    pub bytes: usize,
    /// How often.
    pub runs: usize,
    /// The `wirefs` program.
    pub wirefs: PathBuf,
    /// A directory, not there yet, for files and mount points.
    pub scratch: PathBuf,
    /// Set from outside, it ends the measurement soon and in order.
    pub stop: Arc<AtomicBool>,
}

/// One read of the whole file.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Over what.
    pub over: Over,
    /// How long it took.
    pub span: Duration,
    /// What has come over each card meanwhile, in bytes.
    pub came: [u64; 2],
}

impl Plan {
    /// Measures everything; `tell` hears a line after each read.
    ///
    /// # Errors
    /// The first thing that cannot be set up or read, and a byte that is wrong.
    pub fn run(&self, tell: &mut dyn FnMut(&str)) -> Result<Vec<Sample>, LabError> {
        let pair = Pair::new(self)?;
        let mut samples = Vec::new();
        for over in (0..self.runs).flat_map(|_| Over::ALL) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let sample = pair.read(over)?;
            tell(&format!("{}: {:.2} s, {:?} bytes", over.name(), sample.span.as_secs_f64(), sample.came));
            samples.push(sample);
        }
        Ok(samples)
    }
}
