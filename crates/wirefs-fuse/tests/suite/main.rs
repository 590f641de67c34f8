//! Mounts and uses a file system in memory. Needs root and `/dev/fuse`, and fails without.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod child;
mod ending;
mod files;
mod interrupts;
mod kernel_cache;
mod locking;
mod locks;
mod memory;
mod mounted;
mod mounting;
mod stateless_directories;
mod sys;
mod tree;
