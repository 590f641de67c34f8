//! Tests of the model. Needs root: owners change, and the model does not check permissions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod detection;
mod find;
mod hostfs;
mod local;
mod regressions;
mod repetition;
mod replay;
mod scratch;

/// Returns the seeds of a comparison; `WIREFS_SEEDS` sets their number.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let wanted =
        std::env::var("WIREFS_SEEDS").ok().map(|count| count.parse().expect("WIREFS_SEEDS is a number"));
    0..wanted.unwrap_or(usual)
}
