//! The client core against the reference tree and the real server core, without a wire, a thread or a clock.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]
#![allow(clippy::disallowed_macros, reason = "a test that fails says what came before")]

mod ahead;
mod alone;
mod appends;
mod blamed;
mod budgets;
mod check;
mod cuts;
mod data_connections;
mod deeds;
mod exclusive;
mod failures;
mod first_bytes;
mod full;
mod granted;
mod history;
mod hostile;
mod late;
mod leases;
mod locks;
mod lone;
mod lookups;
mod memory;
mod modes;
mod one_call;
mod opens;
mod pages;
mod program;
mod property;
mod quiet;
mod recalls;
mod redone;
mod remounts;
mod replaced;
mod rollback;
mod stateless;
mod streams;
mod syncs;
mod top;
mod world;

use std::time::Duration;
use wirefs_cache::Mode;
use wirefs_client::{Config, HostName};
use wirefs_op::Timestamp;

/// A client in this mode, with the usual limits.
fn config(mode: &str) -> Config {
    Config {
        mode: Mode::parse(mode).unwrap(),
        deadline: Some(Duration::from_secs(30)),
        uid: 0,
        gid: 0,
        cache_bytes_max: 64 * 1024 * 1024,
        name_ttl_max: None,
        journal: false,
        fsync_here: false,
        confines_links: false,
        day: Timestamp::default(),
        host: HostName::new(b"box"),
    }
}
