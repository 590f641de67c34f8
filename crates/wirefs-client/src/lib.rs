//! The client core: file system calls in, Op messages out, replies in, answers out.
//!
//! *Holds*: each call is answered exactly once; changes are sent in the order in which they were called; a caller never
//! sees less than its own changes; nothing is believed longer than the mode says.
//!
//! *Never*: clocks, files, sockets, threads, errno numbers. Time is an argument, the wire is a queue of frames.
//!
//! *Drive it*: feed [`Client::call`], [`Client::receive`], [`Client::tick`], [`Client::lost`] and
//! [`Client::connected`], and carry out what [`Client::poll`] hands out, in that order.
//!
//! *Proved by*: `tests/suite`, where it talks to the reference tree without a wire.

mod ahead;
mod answering;
pub mod call;
mod config;
mod connections;
mod contended;
mod core;
mod files;
mod host;
mod kernel;
mod learning;
mod leases;
mod locks;
mod machine;
mod operation;
mod output;
mod pending;
mod predict;
mod present;
mod recall;
mod redone;
mod replies;
mod requests;
mod rollback;
mod sending;
mod shelved;
mod status;
mod stored;
mod streams;
mod synced;
mod trim;
mod view;

pub use config::{Attachment, Config};
pub use core::Client;
pub use host::HostName;
pub use output::{DataKey, Lane, Note, Output, Said};
pub use redone::{Again, Redone};
pub use requests::connection::LinkState;
pub use requests::data::DATA_RETRY_AFTER;
pub use status::{AheadStatus, LeaseStatus, Snapshot};
pub use view::bounds::MemoryStatus;
pub use view::conflicts::Conflicts;
pub use view::counters::{Counters, RequestCount};
pub use view::disk_cache::Loaded;
pub use view::prefetch::{Fate, PrefetchStatus};
pub use view::unconfirmed::LateError;
