//! The bytes that files of checked records share: their checksums, and the form of a record.
//!
//! *Holds*: a record whose bytes are cut, wrong, or zeros is never returned.
//!
//! *Never*: files, clocks, threads, randomness; the choice between a torn end and damage, which depends on the promises of each log.
//!
//! *Drive it*: a log has one [`Form`]. Its writer puts a head before the contents of each record. Its reader goes from
//! record to record until [`Form::read`] returns none:
//!
//! ```
//! use wirefs_log::{Crc32c, Form, ReadOutcome};
//!
//! const NOTES: Form<Crc32c> = Form::new(1024);
//! let mut log = Vec::new();
//! NOTES.append(&mut log, &[b"first"]);
//! NOTES.append(&mut log, &[b"sec", b"ond"]);
//! log.truncate(log.len() - 1); // the writer was killed
//!
//! let ReadOutcome::Record { contents, rest, .. } = NOTES.read(&log, Crc32c::default()) else { return };
//! assert_eq!(contents, b"first");
//! assert_eq!(NOTES.read(rest, Crc32c::default()), ReadOutcome::Incomplete);
//! ```
//!
//! *Proved by*: tests beside each module: records cut anywhere, wrong in any byte, or followed by zeros; the checksums of
//! RFC 3720. The examples in `docs/FORMAT.md` are decoded by the crates that use this one.

mod checksum;
mod record;

pub use checksum::{Checksum, Crc32c, HalfSha256, hash_name};
pub use record::{Form, ReadOutcome};
