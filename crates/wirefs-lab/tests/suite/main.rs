//! Tests of the lab and of wirefs on real namespaces, with real mounts and real programs. They need root, `ip`,
//! /dev/net/tun, /dev/fuse and the programs that scripts/need installs, and fail without them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod coherence;
mod command_line;
mod faults;
mod hosts;
mod kills;
mod linked_hosts;
mod timing;

mod compression;
mod conformance;
mod failures;
mod locks;
mod make_run;
mod model;
mod nodes;
mod pings;
mod power_cuts;
mod programs;
mod two_clients;

mod machine;
mod site;
mod snapshot;
mod sys;
