//! The codec as a stranger's bytes meet it: round trips, hostile bytes, fuzz targets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod conversation;
mod fuzz;
mod round_trip;
