//! The Op protocol, second edition: its messages as values, and their encoding.
//!
//! *Holds*: a decoded message is within every limit of [`limits`]. Its names and paths are clean: no empty
//! component, no `.` or `..`, no NUL. Decoding an encoded value returns the same value. Contents are shared
//! with the received or sent buffer, never copied.
//!
//! *Never*: clocks, files, sockets, threads, randomness; a panic caused by a peer's bytes.
//!
//! *Drive it*:
//!
//! ```
//! use wirefs_op::message::get::{GetMode, Tget};
//! use wirefs_op::message::target::Target;
//! use wirefs_op::{Request, Tag, TreePath};
//!
//! let path = TreePath::from_names([&b"src"[..], b"main.rs"]).ok_or("not a clean path")?;
//! let ask = Request::Get(Tget {
//!     target: Target::at(path),
//!     mode: GetMode::DATA.and(GetMode::STAT),
//!     nmsgs: 0,
//!     offset: 0,
//!     count: 4096,
//! });
//! let frame = ask.encode(Tag(7));
//! // A carrier moves `frame.head` and `frame.data`; the other side decodes what follows the size word.
//! assert_eq!(Request::decode(frame.to_body())?, (Tag(7), ask));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: golden bytes beside each message; round trips, hostile bytes and fuzz targets in
//! `tests/suite`; `docs/PROTOCOL.md`, whose examples a test decodes and encodes again.

pub mod errno;
pub mod find_listing;
pub mod frame;
pub mod limits;
pub mod listing;
pub mod lock_names;
pub mod lock_ranges;
pub mod message;
pub mod mix;
pub mod packed;
pub mod path;
pub mod stat;
pub mod time;
pub mod wire;

pub use errno::Errno;
pub use frame::Frame;
pub use lock_names::is_lock_name;
pub use lock_ranges::LockRanges;
pub use message::traits::{Change, Order, Weight};
pub use message::{NOTAG, Reply, Request, Tag};
pub use mix::{fnv1a, mix};
pub use path::TreePath;
pub use stat::{
    Cred, DirEntry, FileId, FsStat, Kind, LockFamily, LockKind, LockRange, SetStat, SetTime, Stat,
};
pub use time::{Time, Timestamp};
