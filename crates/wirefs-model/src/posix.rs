//! The same operations in several worlds: in the model, and through system calls in directories, compared step by step.

mod directory;
mod model;
mod outcome;
mod runner;
mod snapshot;

pub use directory::{Abilities, DirectoryWorld};
pub use model::ModelWorld;
pub use outcome::{Outcome, Seen};
pub use runner::{run_operations, run_posix};

use crate::operation::Operation;

/// Something that a program can work on.
pub trait World {
    /// Does it and tells what a program would have seen.
    fn perform(&mut self, operation: &Operation) -> Outcome;
}
