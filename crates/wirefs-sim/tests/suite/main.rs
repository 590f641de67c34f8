//! Random runs, and runs with a flaw that must be found.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod ahead;
mod flaws;
mod rivals;
mod seeds;
mod workers;
