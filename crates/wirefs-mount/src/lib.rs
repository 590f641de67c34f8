//! The mount runtime: the client core between the kernel's requests and a carrier.
//!
//! ```text
//!  /dev/fuse ── FUSE threads ──┐                      ┌── inline, non-blocking ──> carrier
//!                              ├── Client (one lock) ─┤
//!  /dev/fuse <── wire thread ──┘                      └── wire thread <─────────── carrier
//! ```
//!
//! *Holds*: the FUSE thread that reads a request answers it from the cache, or sends a request to the server. The wire
//! thread answers it when the reply arrives. With a server in the same process, the FUSE thread executes the request.
//! Invalidations may block in the kernel, so they have threads of their own. No lock is held during a system call that
//! may block. A mount dials again for as long as it exists. Each queue is bounded.
//!
//! *Never*: decisions about caching, order or contents, which belong to `wirefs-client`; a server; messages to people,
//! except one line on standard error.
//!
//! *Drive it*: [`connect()`] reaches a server, and [`Connected::mount`] mounts its tree.
//!
//! *Proved by*: unit tests beside each part, journals against scripted disks and servers; `tests/suite` of the command
//! on real mounts.

mod automount;
mod clock;
mod connect;
mod data_connection;
mod engine;
mod handshake;
mod invalidation;
mod invalidation_queue;
mod journal;
mod kernel_calls;
pub mod log;
mod loss;
mod memory;
mod meter;
mod mount_place;
mod mounted;
mod pause;
mod plan;
mod previous_mount;
mod processor_wait;
mod random;
mod server_sink;
mod signals;
mod slow_step;
mod status;
mod store;
mod sys;
mod task_queue;
mod ticker;
mod unsent;
mod user_space;
mod waiter;
mod wire;

pub use automount::{AutomountTrigger, TriggerPlan};
pub use connect::{Connected, connect, recover_journals};
pub use handshake::ConnectError;
pub use journal::{
    FsyncWaits, JournalPlan, JournalRecovery, JournalStatus, PendingJournal, PendingJournalState,
    QuarantineCount, QuarantinedChange, RecoveryError, ReplayProgress, ReplayedJournal, count_quarantined,
    pending_journals, quarantined_changes,
};
pub use meter::{FinishedWait, PresentWait};
pub use mounted::{MountControl, MountStartError, Mounted};
pub use plan::{CONNECTIONS_MAX, MountPlan};
pub use slow_step::MountStep;
pub use status::MountStatus;
pub use store::{StorePlan, StoreStatus};
pub use unsent::Unsent;
pub use user_space::UserSpaceMount;
