//! Tests of whole trees on stores in memory.

mod checkpoints;
mod collection;
mod differences;
mod faults;
mod files;
mod fixture;
mod listings;
mod loss;
mod random;
#[expect(clippy::disallowed_methods, reason = "the test runs threads as a driver does")]
mod threads;
#[expect(clippy::disallowed_methods, reason = "a timeout guards against a deadlock")]
mod transactions;
mod waits;
