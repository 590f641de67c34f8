//! The command as a user runs it: servers, mounts and errors, each in a home of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod background;
mod doctor;
mod errors;
mod force;
mod fstab;
mod leases;
mod over_ssh;
mod over_tls;
mod over_unix;
mod pages;
mod readme;
mod semantics;
mod world;
