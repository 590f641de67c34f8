//! Tests of nodes on a simulated network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod life;
mod network;
mod pair;
mod paths;
mod seeds;
mod traffic;
