//! The command as a user runs it: servers, mounts and errors, each in a home of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod background;
mod blocks;
mod connections;
mod doctor;
mod echo;
mod errors;
mod force;
mod fstab;
mod full;
mod journal;
mod kept;
mod leases;
mod listings;
mod locks;
mod lost_power;
mod lost_power_alive;
mod modes;
mod nodes;
mod nodes_journal;
mod over_ssh;
mod over_tls;
mod over_unix;
mod pages;
mod pen;
mod power_cut;
mod quarantine;
mod readme;
mod semantics;
mod started_again;
mod taken_up;
mod warm;
mod world;
