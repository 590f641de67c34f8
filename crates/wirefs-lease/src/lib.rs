//! Leases: the right to use what is known without asking, as two machines. The server grants and recalls
//! ([`Grantor`]); the client holds, forgets and lets them run out ([`Holder`]).
//!
//! *Holds*: before a change is let through, nobody else believes anything about what it touches, or their leases have
//! run out; what was read before a change is not granted after it; no change waits for ever, whatever holders do; whoever
//! comes back is told what it missed before it believes anything; every table is bounded, and a full one recalls too much
//! or grants too little, never the reverse.
//!
//! *Never*: clocks, messages, files, sockets, threads, randomness; a look at what an object is.
//!
//! *Drive it*:
//! ```
//! use std::time::Duration;
//! use wirefs_lease::{Config, Grantor, Holder, HolderKey, Item, JobKey, Output, Touch, Touched};
//! use wirefs_op::{FileId, Time};
//!
//! let (a, b) = (HolderKey(1), HolderKey(2));
//! let mut grantor = Grantor::new(Config::default(), None);
//! let mut holder = Holder::new(Time(0), Config::default().term);
//! grantor.join(Time(0), a);
//! grantor.join(Time(0), b);
//!
//! // A reads a file, and may believe what it read.
//! let file = FileId { fs: 0, ino: 12, generation: 3 };
//! grantor.begin(JobKey(1));
//! assert_eq!(grantor.grant(Time(5), JobKey(1), a, &[file]), [true]);
//! grantor.end(JobKey(1));
//! holder.answered(Time(9), Time(1));
//! assert!(holder.is_valid(Time(9)) && !holder.is_overtaken(file, Time(1)));
//!
//! // B changes it: A has to forget first.
//! let write = Touched { id: file, name: None, exclusive: false, surprise: false };
//! grantor.begin(JobKey(2));
//! assert_eq!(grantor.touch(Time(20), JobKey(2), Some(b), &[write.clone()]), Touch::Parked);
//! let Some(Output::Recall { serial, items, .. }) = grantor.poll() else { return };
//! assert_eq!(items, [Item::whole(file)]);
//! let forgetting = holder.recalled(Time(24), serial, &items);
//! assert!(holder.is_overtaken(file, Time(23)));
//! // … here A drops what it and its kernel know of the file …
//! let Some(answer) = holder.forgotten(forgetting) else { return };
//! grantor.recalled(Time(30), a, answer);
//! assert_eq!(grantor.poll(), Some(Output::Retry(JobKey(2))));
//! grantor.begin(JobKey(2));
//! assert_eq!(grantor.touch(Time(31), JobKey(2), Some(b), &[write]), Touch::Clear);
//! // … here B's request changes the file …
//! grantor.end(JobKey(2));
//! # assert!(holder.valid_until() == Some(Time(1) + Duration::from_secs(15)));
//! ```
//!
//! *Proved by*: a test per rule beside each machine; `tests/suite`, a simulation of both with delays, cuts, sleep, slow
//! kernels, restarts and programs at the server, which finds each of a list of mistakes made on purpose.

pub mod grantor;
pub mod holder;
pub mod known;
pub mod limits;
pub mod recall;
pub mod solitude;

pub use grantor::{Config, Grantor, HolderKey, JobKey, Joined, Output, Touch, Touched};
pub use holder::{Empty, Forgetting, Holder};
pub use recall::{Item, Serial};
pub use solitude::Solitude;
