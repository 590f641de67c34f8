//! Raw sockets on loopback and between namespaces. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod circuit;
mod circuits;
mod courier;
mod ether;
mod exchange;
mod memory;
mod paths;
mod rights;
mod site;
