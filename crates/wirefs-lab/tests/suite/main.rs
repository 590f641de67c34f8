//! The lab on real namespaces, and wirefs in it: real mounts, real programs. Needs root, `ip`, /dev/net/tun, /dev/fuse
//! and the programs that scripts/need installs, and fails without them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod coherence;
mod command_line;
mod faults;
mod hosts;
mod kills;
mod timing;
mod world;

mod broken;
mod conformance;
mod locks;
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
