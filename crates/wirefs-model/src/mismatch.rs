//! The report of a difference between a tree and the model.

use std::collections::VecDeque;
use std::fmt;

/// The number of reported operations before a mismatch.
const HISTORY_MAX: usize = 40;
/// The reported characters of each outcome.
const OUTCOME_CHARS_MAX: usize = 100;

/// The first operation whose result differs from the model's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The seed of the sequence; `None` if the operations were given.
    pub seed: Option<u64>,
    /// The number of the operation, from 0.
    pub step: usize,
    /// The operation.
    pub operation: String,
    /// The outcome of the model.
    pub model: String,
    /// The outcome of the other tree.
    pub actual: String,
    /// The last operations, including this one, with their outcomes and the directories in which they ran.
    pub history: Vec<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.history {
            writeln!(f, "  {line}")?;
        }
        match self.seed {
            Some(seed) => writeln!(f, "seed {seed}, step {}: {}", self.step, self.operation)?,
            None => writeln!(f, "step {}: {}", self.step, self.operation)?,
        }
        writeln!(f, "  model: {}", self.model)?;
        write!(f, "  actual: {}", self.actual)
    }
}

impl std::error::Error for Mismatch {}

/// The last operations.
#[derive(Debug, Default)]
pub(crate) struct OperationHistory(VecDeque<String>);

impl OperationHistory {
    pub(crate) fn record(&mut self, operation: &str, outcome: &impl fmt::Debug) {
        if self.0.len() == HISTORY_MAX {
            self.0.pop_front();
        }
        let whole = format!("{outcome:?}");
        let mut outcome: String = whole.chars().take(OUTCOME_CHARS_MAX).collect();
        if outcome.len() < whole.len() {
            outcome.push('…');
        }
        self.0.push_back(format!("{operation} -> {outcome}"));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}
