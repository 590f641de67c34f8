//! Leases: the right to use cached data without asking, as two state machines. [`Grantor`] grants and recalls
//! on the server; [`LeaseHolder`] holds, invalidates and expires on the client.
//!
//! *Holds*: before a change runs, no other client has a valid lease on the objects it touches. Data read
//! before a change is not granted after it. No change waits forever, even if holders fail. A holder that
//! reconnects gets its missed recalls before its leases are valid again. Every table is bounded; a full one
//! causes too many recalls or too few grants, never the reverse.
//!
//! *Never*: clocks, messages, files, sockets, threads, randomness; access to the objects themselves.
//!
//! *Drive it*:
//! ```
//! use std::time::Duration;
//! use wirefs_lease::{Grantor, GrantorOutput, HolderKey, JobKey, LeaseConfig, LeaseHolder, LeaseItem};
//! use wirefs_lease::{PartyKey, TouchOutcome, Touched};
//! use wirefs_op::{FileId, Time};
//!
//! let (a, b) = (HolderKey(1), HolderKey(2));
//! let mut grantor = Grantor::new(LeaseConfig::default(), None);
//! let mut holder = LeaseHolder::new(Time(0), LeaseConfig::default().term);
//! grantor.join(Time(0), a, PartyKey("key of A".into()));
//! grantor.join(Time(0), b, PartyKey("key of B".into()));
//!
//! // A reads a file and may cache it.
//! let file = FileId { fs: 0, ino: 12, generation: 3 };
//! grantor.begin(JobKey(1));
//! assert_eq!(grantor.grant(Time(5), JobKey(1), a, &[file]), [true]);
//! grantor.end(JobKey(1));
//! holder.reply_received(Time(9), Time(1));
//! assert!(holder.is_valid(Time(9)) && !holder.is_overtaken(file, Time(1)));
//!
//! // B changes the file: A has to invalidate its cache first.
//! let write = Touched { id: file, name: None, exclusive: false, recall_own: false };
//! grantor.begin(JobKey(2));
//! assert_eq!(grantor.touch(Time(20), JobKey(2), Some(b), &[write.clone()]), TouchOutcome::Parked);
//! let Some(GrantorOutput::Recall { serial, items, .. }) = grantor.poll() else { return };
//! assert_eq!(items, [LeaseItem::whole(file)]);
//! let pending = holder.recalled(Time(24), serial, &items);
//! assert!(holder.is_overtaken(file, Time(23)));
//! // … here A and its kernel invalidate the file …
//! let Some(answer) = holder.recall_done(pending) else { return };
//! grantor.recall_answered(Time(30), a, answer);
//! assert_eq!(grantor.poll(), Some(GrantorOutput::Retry(JobKey(2))));
//! grantor.begin(JobKey(2));
//! assert_eq!(grantor.touch(Time(31), JobKey(2), Some(b), &[write]), TouchOutcome::Clear);
//! // … here B's request changes the file …
//! grantor.end(JobKey(2));
//! # assert!(holder.valid_until() == Some(Time(1) + Duration::from_secs(15)));
//! ```
//!
//! *Proved by*: a test per rule beside each machine; `tests/suite`, a simulation of both machines with
//! delays, broken connections, sleep, slow kernels, restarts and programs on the server. The simulation
//! detects each of a list of deliberate mistakes.

pub mod exclusive_session;
pub mod grantor;
pub mod holder;
pub mod lease_set;
pub mod limits;
pub mod recall;

pub use exclusive_session::ExclusiveSession;
pub use grantor::{
    Grantor, GrantorOutput, HolderKey, JobKey, JoinOutcome, LeaseConfig, PartyKey, TouchOutcome, Touched,
};
pub use holder::{FullInvalidation, LeaseHolder, PendingRecall};
pub use recall::{LeaseItem, Serial};
