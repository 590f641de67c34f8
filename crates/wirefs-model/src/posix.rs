//! Executes the same operations on the model and through system calls in directories, compared step by step.

mod directory;
mod model;
mod outcome;
mod runner;
mod snapshot;

pub use directory::{DirectoryExecutor, FsFeatures};
pub use model::ModelExecutor;
pub use outcome::{ObservedStat, OperationOutcome};
pub use runner::{run_operations, run_posix};

use crate::operation::Operation;

/// Executes operations.
pub trait Executor {
    /// Executes an operation and returns its outcome for a program.
    fn perform(&mut self, operation: &Operation) -> OperationOutcome;
}
