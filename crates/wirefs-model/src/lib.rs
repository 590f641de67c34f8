//! The reference tree, simple and evidently correct, and random operations that compare other trees and mounts with it.
//!
//! *Holds*: [`ModelTree`] behaves like a plain directory on Linux, including errors, as seen by root: it does not check
//! permissions, grants no locks, and its time is a counter. One seed gives one sequence of operations, on every
//! machine.
//!
//! *Never*: shipped; clocks; randomness other than the seed. The model makes no system call; only
//! [`posix::DirectoryExecutor`] does.
//!
//! *Drive it*: [`run_posix`] compares directories (a plain one, or several mounts of one export) with the model through
//! system calls; [`run_op`] compares any [`Tree`](wirefs_server::Tree) with it through Op requests; [`run_touches`]
//! checks the announcements that such a tree makes before changes.
//!
//! ```
//! use wirefs_model::{ModelTree, run_op};
//! use wirefs_op::message::version::BootId;
//!
//! run_op(7, 200, &ModelTree::new(BootId(1)))?;
//! # Ok::<(), wirefs_model::Mismatch>(())
//! ```
//!
//! *Proved by*: `tests/suite`: the local kernel and the model agree for thousands of operations, and so do the exported
//! host directory and the model; each former difference is a regression test.

mod contents;
mod fs;
mod mismatch;
pub mod operation;
mod ops;
pub mod posix;
mod tree;

pub use mismatch::Mismatch;
pub use operation::Operation;
pub use ops::{run_op, run_touches};
pub use posix::{run_operations, run_posix};
pub use tree::ModelTree;
