//! The reference tree, plain and obviously right, and random operations that compare other trees and mounts with it.
mod contents;
mod dice;
mod fs;
mod operation;
pub mod posix;

pub use dice::Dice;
pub use operation::{How, Operation, Pattern};
pub use posix::{Mismatch, run_operations, run_posix};
