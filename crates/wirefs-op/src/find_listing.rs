//! The listings of a subtree, packed into the data of Rfind: directories, each followed by its entries.
//!
//! *Holds*: what stands in one message is told against what stands before it in the same message, so each message is
//! understood without the others; each record has exactly one form.
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
    /// Where it is, from the target of the request on; the root is the target itself.
    pub path: TreePath,
    /// Its attributes as they were before its listing began.
    pub stat: Stat,
    /// Its listing starts here; else it goes on from an earlier message.
    pub begins: bool,
    /// With the entries that follow in this message, its listing is complete.
    pub ends: bool,
}

/// An entry of the directory before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindEntry {
    /// The name.
    pub name: Vec<u8>,
    /// The object's attributes, of the link itself when it is one.
    pub stat: Stat,
    /// All of a regular file's contents, or a link's target: `stat.size` bytes.
    pub contents: Option<Bytes>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindRecord {
    /// A directory; what follows are its entries.
    Directory(FindDirectory),
    /// An entry.
    Entry(FindEntry),
}

/// The bits of a record's first byte.
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

/// Whether an object of this kind may bring its contents along.
fn has_contents(kind: Kind) -> bool {
    match kind {
        Kind::File | Kind::Symlink => true,
        Kind::Directory | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => false,
    }
}

/// How many bytes two names have in common from their start on.
fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
