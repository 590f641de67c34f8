//! Both state machines together: a simulated server that applies changes, clients with their kernels, and
//! delays, losses and sleep between them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]
#![allow(clippy::disallowed_macros, reason = "a test that fails says kind came before")]

mod check;
mod clients;
mod faults;
mod mutations;
mod runs;
mod server;
mod sim_client;
mod simulation;
mod store;
mod wire;
