//! The client's journal: the changes of a mount that are not yet on the server's disk. Has the bytes of its files, their valid part, and their
//! delivery after the mount died or the server's machine restarted.
//!
//! ```text
//!  DIRECTORY/            one for each session
//!    lock                held while a mount uses the journal
//!    00000001.journal …  segments: a header, then entries; the oldest is removed first
//!    decided             the findings of a replay that is under way
//! ```
//!
//! *Holds*: no bytes count whose checksum is wrong; of a damaged journal all changes before the damage count, in order, and none behind it is
//! applied; a change that the server has applied is never sent as a new one; changes in flight are bounded; nothing counts as durable
//! before a sync.
//!
//! *Never*: clocks, files, sockets, threads, randomness; the choice of what is journaled, which is the client core's.
//!
//! *Drive it*: a mount gets the position of an entry from [`Layout`], writes [`entry::head`] and the body there, and gets jobs for the disk
//! from [`GroupCommit`]. Later [`scan`] reads a segment, [`Survey`] joins the segments, and [`Delivery`] or [`Pipeline`] sends the changes:
//!
//! ```
//! use bytes::Bytes;
//! use wirefs_journal::{DeliveryInput, Pipeline, PipelineOutput, Record, SessionTerms};
//! use wirefs_op::message::put::{PutMode, Tput};
//! use wirefs_op::message::target::Target;
//! use wirefs_op::message::version::BootId;
//! use wirefs_op::wire::Data;
//! use wirefs_op::{NOTAG, Request, SetStat, TreePath};
//!
//! let path = TreePath::from_names([&b"note"[..]]).ok_or("not a clean path")?;
//! let set = SetStat { size: Some(0), ..SetStat::default() };
//! let data = Data(Bytes::new());
//! let put = Tput { target: Target::at(path), mode: PutMode::STAT, create: None, set, offset: 0, data };
//! let record = Record { number: 4, body: Request::Put(put).encode(NOTAG).to_body() };
//!
//! // The server has the changes up to 3.
//! let mut pipeline = Pipeline::new(SessionTerms { ledger: Some(4), boot: BootId(1) }, true, None)?;
//! pipeline.handle(DeliveryInput::Record(record))?;
//! assert!(matches!(pipeline.poll(), Some(PipelineOutput::Send(_)))); // which number follows
//! assert!(matches!(pipeline.poll(), Some(PipelineOutput::Send(_)))); // the change
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: tests beside each module: segments cut anywhere, or wrong in any byte; deliveries to a simulated server; a disk that executes
//! its jobs in any order. The simulation (`make sim AHEAD=1`): machines that lose power at any of these points.

pub mod change;
pub mod delivery;
pub mod entry;
pub mod findings;
pub mod group_commit;
pub mod header;
pub mod layout;
pub mod limits;
pub mod outcome;
pub mod pipeline;
pub mod replay;
pub mod segment;
pub mod survey;

pub use delivery::{
    ChangeFate, Delivery, DeliveryFault, DeliveryOutput, DeliveryPlan, ReplayReport, SuspendedReplay,
};
pub use entry::{Entry, Record};
pub use findings::Findings;
pub use group_commit::{DiskJob, GroupCommit, Point, SyncRole};
pub use header::{Header, HeaderFault};
pub use layout::{Figures, Layout, Misuse, Placement};
pub use outcome::ChangeOutcome;
pub use pipeline::{
    DeliveryCounts, DeliveryInput, Pipeline, PipelineOutput, RejectedChange, SessionTerms, Undeliverable,
};
pub use replay::{ObjectStat, Replay, ReplayFault, ReplayStep};
pub use segment::{Scan, Tail, scan};
pub use survey::{Damage, SegmentRecords, Survey};
