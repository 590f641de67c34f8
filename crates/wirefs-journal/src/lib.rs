//! The client's journal: the changes that a mount has made and that the server's disk does not have yet. Its bytes, what of them counts,
//! and how the server gets what a mount left that died.
//!
//! ```text
//!  DIRECTORY/            one for each session
//!    lock                held while a mount uses the journal
//!    00000001.journal …  segments: a header, then changes and notes behind each other; the oldest goes first
//!    decided             what is being done again at a server whose machine was started again
//! ```
//!
//! *Holds*: nothing is believed whose checksum is wrong; of a damaged journal all changes before the damage are had, in order, and none
//! behind it is taken for one that may be carried out; a change that the server has carried out is never sent as a new one; what is
//! under way is bounded; nothing is taken for being on the disk that the disk was not told to have.
//!
//! *Never*: clocks, files, sockets, threads, randomness; a decision what is journaled, which is the client core's.
//!
//! *Drive it*: a mount asks [`Live`] where an entry stands, writes [`entry::head`] and the body there, and asks [`Durable`] what the disk
//! is to do. Later [`scan`] reads a segment, [`Survey`] puts segments together, and [`Replay`] brings the changes to the server:
//!
//! ```
//! use bytes::Bytes;
//! use wirefs_journal::{Action, Event, Record, Replay, Terms};
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
//! // The server has seen the changes up to 3.
//! let mut replay = Replay::new(Terms { ledger: Some(4), boot: BootId(1) }, true, None)?;
//! replay.handle(Event::Record(record))?;
//! assert!(matches!(replay.poll(), Some(Action::Send(_)))); // which number follows
//! assert!(matches!(replay.poll(), Some(Action::Send(_)))); // the change
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: tests beside each module: segments cut anywhere, wrong in any byte; replays to a server that is played; a disk that does
//! what it is told in any order. The simulation (`make sim AHEAD=1`): machines that lose power in the midst of any of it.

pub mod bring;
pub mod change;
pub mod decision;
pub mod durable;
pub mod entry;
pub mod header;
pub mod limits;
pub mod live;
pub mod redo;
pub mod replay;
pub mod segment;
mod sum;
pub mod survey;
pub mod told;

pub use bring::{Act, Became, Bring, Course, Decided, Fate, Fault};
pub use decision::Decision;
pub use durable::{Durable, Job, Point, Turn};
pub use entry::{Entry, Record};
pub use header::{Header, HeaderFault};
pub use live::{Figures, Live, Misuse, Placed};
pub use redo::{Found, Redo, Redone, Unlike};
pub use replay::{Action, Event, Outcome, Refused, Replay, Terms, Unfit};
pub use segment::{Rest, Scan, scan};
pub use survey::{Damage, Survey, Taken};
pub use told::Told;
