//! A host directory behind the `Tree` trait, asked as the server asks it.
//!
//! Tests that mount or act for other users need root and fail without it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod attributes;
mod callers;
mod copies;
mod creation;
mod data;
mod entries;
mod escapes;
mod find;
mod full_disk;
mod harness;
mod leases;
mod listing;
mod locks;
mod names;
mod objects;
mod opening;
mod privileges;
mod read_only;
mod watch;
mod xattrs;
