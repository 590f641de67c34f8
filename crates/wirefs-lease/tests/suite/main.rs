//! Both machines together: a simulated server with its changes, clients with their kernels, and everything between them
//! that can be late, lost or asleep.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]
#![allow(clippy::disallowed_macros, reason = "a test that fails says what came before")]

mod check;
mod clients;
mod dice;
mod flaws;
mod runs;
mod seat;
mod server;
mod store;
mod troubles;
mod wire;
mod world;
