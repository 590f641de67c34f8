//! Raw sockets on loopback and between namespaces. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod block_store;
mod capability;
mod circuits;
mod ether;
mod exchange;
mod memory;
mod paths;
mod relay;
mod site;
