//! Tests of the block tree against the reference model, on each store.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod contract;
mod format;
