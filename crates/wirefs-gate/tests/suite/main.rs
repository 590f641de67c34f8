//! The program as clients meet it: our own client of a few lines, those of diod, and strangers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod client;
mod diod;
mod gate;
mod hostile;
mod linux;
mod many;
mod plan;
mod source;
