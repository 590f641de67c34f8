//! The model against what it is a model of. Needs root: owners change, and the model checks no permissions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod detection;
mod find;
mod hostfs;
mod local;
mod once_different;
mod redo;
mod repeat;
mod scratch;

/// How many seeds each comparison runs; more with `WIREFS_SEEDS`.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let wanted =
        std::env::var("WIREFS_SEEDS").ok().map(|count| count.parse().expect("WIREFS_SEEDS is a number"));
    0..wanted.unwrap_or(usual)
}
