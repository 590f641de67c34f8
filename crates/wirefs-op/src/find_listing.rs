//! The listings of a subtree, packed into the data of Rfind: directories, each followed by its entries.
//!
//! *Holds*: a record is encoded as a difference to the previous record of the same message, so each message
//! is decoded without the others. Each record has exactly one encoding.
//!
//! *Drive it*:
//!
//! ```
//! use wirefs_op::find_listing::{FindDirectory, FindReader, FindRecord, FindWriter};
//! use wirefs_op::{FileId, Kind, Stat, Timestamp, TreePath};
//!
//! # let never = Timestamp::default();
//! let stat = Stat { kind: Kind::Directory, // …
//! #    id: FileId::default(), version: 1, mode: 0o755, nlink: 2, uid: 0, gid: 0, rdev: 0, size: 0, blocks: 0,
//! #    blksize: 4096, atime: never, mtime: never, ctime: never, without_xattrs: true, leased: false
//! };
//! let mut writer = FindWriter::new(1000);
//! assert!(writer.directory(&FindDirectory { path: TreePath::root(), stat, begins: true, ends: false }));
//! assert!(writer.entry(b"src", &stat, None));
//! writer.end_directory();
//!
//! let mut records = FindReader::new(writer.finish());
//! assert!(matches!(records.next(), Some(Ok(FindRecord::Directory(directory))) if directory.ends));
//! assert!(matches!(records.next(), Some(Ok(FindRecord::Entry(entry))) if entry.name == b"src"));
//! assert!(records.next().is_none());
//! ```

mod attributes;
mod number;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

use crate::path::TreePath;
use crate::stat::{Kind, Stat};
use bytes::Bytes;

pub use reader::FindReader;
pub use writer::FindWriter;

/// A directory whose entries follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindDirectory {
    /// The path relative to the target of the request; the root is the target itself.
    pub path: TreePath,
    /// The directory's attributes before its listing began.
    pub stat: Stat,
    /// True if the listing starts in this message; false if it continues from an earlier one.
    pub begins: bool,
    /// True if the listing is complete with the entries in this message.
    pub ends: bool,
}

/// An entry of the preceding directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindEntry {
    /// The name.
    pub name: Vec<u8>,
    /// The attributes of the object; of a symbolic link, its own.
    pub stat: Stat,
    /// The contents of a regular file or the target of a symbolic link: `stat.size` bytes.
    pub contents: Option<Bytes>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindRecord {
    /// A directory, followed by its entries.
    Directory(FindDirectory),
    /// An entry.
    Entry(FindEntry),
}

/// The bits in the first byte of a record.
mod record_bits {
    pub(super) const DIRECTORY: u8 = 1;
    pub(super) const BEGIN: u8 = 2;
    pub(super) const END: u8 = 4;
    pub(super) const CONTENTS: u8 = 8;
    pub(super) const WITHOUT_XATTRS: u8 = 16;
    pub(super) const LEASED: u8 = 32;
    pub(super) const OF_BOTH: u8 = WITHOUT_XATTRS | LEASED;
    pub(super) const OF_DIRECTORY: u8 = DIRECTORY | BEGIN | END | OF_BOTH;
    pub(super) const OF_ENTRY: u8 = CONTENTS | OF_BOTH;
}

/// Returns true if an object of this kind may carry its contents.
fn has_contents(kind: Kind) -> bool {
    match kind {
        Kind::File | Kind::Symlink => true,
        Kind::Directory | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => false,
    }
}

/// Returns the length of the common prefix of two names, in bytes.
fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
