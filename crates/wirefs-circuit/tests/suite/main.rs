//! Nodes in a simulated network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod life;
mod pair;
mod paths;
mod seeds;
mod traffic;
mod world;
