//! The reference tree, plain and obviously right, and random operations that compare other trees and mounts with it.
//!
//! *Holds*: [`ModelTree`] does what Linux does on a plain directory, error for error, as root sees it: permissions are
//! not checked, locks not granted, and time is a counter. One seed gives one sequence of operations, everywhere.
//!
//! *Never*: shipped; a clock or randomness other than the seed. The model itself makes no system call: only
//! [`posix::DirectoryWorld`] does.
//!
//! *Drive it*: [`run_posix`] compares directories (a plain one, or several mounts of one export) with the model through
//! system calls; [`run_op`] compares any [`Tree`](wirefs_server::Tree) with it through Op requests, and
//! [`run_touches`] what such a tree says before it changes something.
//!
//! ```
//! use wirefs_model::{ModelTree, run_op};
//! use wirefs_op::message::version::BootId;
//!
//! run_op(7, 200, &ModelTree::new(BootId(1)))?;
//! # Ok::<(), wirefs_model::Mismatch>(())
//! ```
//!
//! *Proved by*: `tests/suite`: the local kernel and the model do the same for thousands of operations, and so do the
//! exported host directory and the model; what once differed is kept as a test of its own.

mod contents;
mod dice;
mod fs;
mod mismatch;
pub mod operation;
mod ops;
pub mod posix;
mod tree;

pub use dice::Dice;
pub use mismatch::Mismatch;
pub use operation::Operation;
pub use ops::{run_op, run_touches};
pub use posix::{run_operations, run_posix};
pub use tree::ModelTree;
