//! Tests of the command as a user runs it, each with its own home directory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod background;
mod blocks;
mod cached_walks;
mod connections;
mod disk_cache;
mod doctor;
mod echo;
mod errors;
mod file_holder;
mod force;
mod fstab;
mod full_disk;
mod home;
mod journal;
mod leases;
mod listings;
mod locks;
mod lost_power;
mod lost_power_alive;
mod make_run;
mod modes;
mod nine;
mod nodes;
mod nodes_journal;
mod over_ssh;
mod over_tls;
mod over_unix;
mod pages;
mod power_cut;
mod quarantine;
mod readme;
mod semantics;
mod server_restart;
mod session_restore;
mod unsent;
