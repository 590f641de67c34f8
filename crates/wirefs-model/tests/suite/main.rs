//! The model against what it is a model of.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod local;
mod scratch;
