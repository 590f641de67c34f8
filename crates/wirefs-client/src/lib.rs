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

pub mod call;
mod config;
mod counters;
mod host;
mod output;

mod kernel;
mod pending;
mod requests;
mod view;

mod answering;
mod background;
mod core;
mod learning;
mod operation;
mod policies;
mod prefetch;
mod replies;
mod sending;
mod settling;
mod steps;
mod timing;

mod machine;
mod status;

pub use config::{Attachment, Config};
pub use core::Client;
pub use counters::{Counters, RequestCount};
pub use host::HostName;
pub use kernel::{automount, invalidation_queue};
pub use machine::{Again, Redone};
pub use output::{ChangeFact, DataKey, Lane, Note, Output};
pub use requests::connection::LinkState;
pub use requests::data::DATA_RETRY_AFTER;
pub use requests::late::SYNC_FACTOR;
pub use status::{AheadStatus, LeaseStatus, Snapshot};
pub use view::bounds::MemoryStatus;
pub use view::conflicts::Conflicts;
pub use view::disk_cache::Loaded;
pub use view::prefetch::{Fate, PrefetchStatus};
pub use view::unconfirmed::LateError;
