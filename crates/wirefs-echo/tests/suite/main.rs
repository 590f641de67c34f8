//! The block store in a simulated network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod attack;
mod code;
mod copies;
mod hosts;
mod life;
mod loss;
mod memory;
mod overhearing;
mod property;
mod rates;
mod root;
mod together;
mod world;
