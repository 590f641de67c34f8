//! The store over real pings. Needs root, for namespaces and raw sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod blocks;
mod loss;
mod nodes;
mod opening;
mod overhearing;
mod site;
