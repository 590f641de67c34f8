//! The tree over servers that nobody here wrote, and over a synthetic one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod diod;
mod op;
mod synthetic;
