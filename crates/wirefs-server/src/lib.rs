//! The server core: sessions, order of changes, leases, and the trait `Tree`.
//!
//! *Holds*: the changes of one session are executed one at a time, in the order received. Each request gets exactly
//! one last reply or is canceled. A tag is free only when no further reply to it can come. A session outlives its
//! connections by a bounded time. A change of leased objects waits until all other holders have answered a recall; it
//! keeps its write slot meanwhile, but no thread. Every table is bounded.
//!
//! *Never*: clocks, threads, files, sockets, randomness. A fault of a peer closes its connection and affects no other.
//!
//! *Drive it*:
//! ```
//! use wirefs_op::message::version::{BootId, SessionId, Tversion, VERSION};
//! use wirefs_op::{NOTAG, Request, Time, wire::Text};
//! use wirefs_server::{ConnectionKey, ServerInput, ServerOutput, Sessions};
//!
//! let mut sessions = Sessions::new(BootId(7));
//! let connection = ConnectionKey(1);
//! sessions.handle(Time(0), ServerInput::Connected(connection));
//! let hello = Request::Version(Tversion {
//!     msize: 1 << 20,
//!     version: Text::new(VERSION),
//!     features: 0,
//!     session: SessionId([1; 16]),
//! });
//! sessions.handle(Time(1), ServerInput::Received(connection, hello.encode(NOTAG).to_body()));
//! assert!(matches!(sessions.poll(), Some(ServerOutput::Reply { tag: NOTAG, .. })));
//! ```
//!
//! *Proved by*: a test per rule and a property over random interleavings in `sessions/tests`.

pub mod blame;
mod creations;
pub mod get_replies;
mod ledger;
pub mod limits;
pub mod lock_table;
pub mod open_files;
pub mod repeat;
pub mod saved_ledger;
pub mod sessions;
pub mod tree;

pub use blame::{CloseReason, PeerFault};
pub use get_replies::GetReplies;
pub use limits::{EXCLUSIVE_END_MAX, RECOVERY_PERIOD};
pub use lock_table::LockTable;
pub use open_files::OpenFiles;
pub use saved_ledger::{LedgerRecord, PriorState, SavedLedger, StartedChange};
pub use sessions::{
    Colocation, ConnectionKey, Job, JobKey, JobTimes, LeaseTerms, ServerInput, ServerOutput, Sessions,
};
pub use tree::{
    Attached, ExternalChange, ObserveChange, Parked, PartyKey, Replies, SessionKey, Stopped, Touched, Tree,
};
