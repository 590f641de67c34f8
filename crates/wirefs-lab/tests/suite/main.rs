//! The lab on real namespaces. Needs root, `ip` and /dev/net/tun, and fails without them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod command_line;
mod faults;
mod hosts;
mod timing;
mod world;
