//! What is reported when a world and the model part.

use std::collections::VecDeque;
use std::fmt;

/// How many operations before a mismatch are shown.
const HISTORY_MAX: usize = 40;
/// How much of each outcome is shown, in characters.
const OUTCOME_CHARS_MAX: usize = 100;

/// A world that did not do what the model did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The seed of the sequence; `None` for a given one.
    pub seed: Option<u64>,
    /// The number of the operation, from 0.
    pub step: usize,
    /// What was asked.
    pub asked: String,
    /// What the model answers.
    pub model: String,
    /// What the world answered.
    pub world: String,
    /// The last operations, this one included, with the directory that each was done in and what came of it.
    pub history: Vec<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.history {
            writeln!(f, "  {line}")?;
        }
        match self.seed {
            Some(seed) => writeln!(f, "seed {seed}, step {}: {}", self.step, self.asked)?,
            None => writeln!(f, "step {}: {}", self.step, self.asked)?,
        }
        writeln!(f, "  model: {}", self.model)?;
        write!(f, "  world: {}", self.world)
    }
}

impl std::error::Error for Mismatch {}

/// The last operations.
#[derive(Debug, Default)]
pub(crate) struct History(VecDeque<String>);

impl History {
    pub(crate) fn note(&mut self, asked: &str, outcome: &impl fmt::Debug) {
        if self.0.len() == HISTORY_MAX {
            self.0.pop_front();
        }
        let whole = format!("{outcome:?}");
        let mut outcome: String = whole.chars().take(OUTCOME_CHARS_MAX).collect();
        if outcome.len() < whole.len() {
            outcome.push('…');
        }
        self.0.push_back(format!("{asked} -> {outcome}"));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}
