//! The block store in a simulated network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod attack;
mod blocks;
mod copies;
mod erasure_code;
mod hosts;
mod loss;
mod memory;
mod overhearing;
mod property;
mod rates;
mod replication;
mod root_only;
mod simulation;
