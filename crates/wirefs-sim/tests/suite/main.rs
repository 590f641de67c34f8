//! The simulation: many runs in which nothing is wrong, and mistakes that are found.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod ahead;
mod crew;
mod flaws;
mod rivals;
mod seeds;
