//! Whole trees on stores in memory.

mod checkpoints;
mod collection;
mod differences;
mod faults;
mod files;
mod listings;
mod loss;
mod random;
#[expect(clippy::disallowed_methods, reason = "threads of a test, as a driver would have them")]
mod threads;
#[expect(clippy::disallowed_methods, reason = "one of them may wait for ever")]
mod turns;
mod waits;
mod world;
