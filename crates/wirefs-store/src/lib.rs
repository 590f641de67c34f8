//! The client's state on disk between mounts: a snapshot of listings, and a disk cache of file contents in segments.
//!
//! ```text
//!  DIRECTORY/            0700, one for each source
//!    lock                held while a mount uses the directory
//!    snapshot            listings and the session, written at a clean unmount, removed when it is read
//!    index               where pieces are in the segments; the same
//!    00000001.segment …  pieces of file contents, appended; the oldest segment goes first
//! ```
//!
//! *Holds*: data with a wrong checksum is never used. A snapshot is removed from the disk before it is used, so that an
//! old one is never taken for the last one. Every file is bounded. Files have mode 0600.
//!
//! *Never*: decisions about the validity of cached data, which belong to the client core.
//!
//! *Drive it*: [`SourceDirectory::open`], then [`SourceDirectory::take_snapshot`] and [`DiskCache::open`]; at the end
//! [`DiskCache::close`] and [`SourceDirectory::put_snapshot`].
//!
//! *Proved by*: unit tests beside each module, with files truncated anywhere and any byte wrong.

pub mod disk_cache;
pub mod limits;
pub mod snapshot;
pub mod source_directory;

pub use disk_cache::{DiskCache, DiskCacheStats};
pub use snapshot::{LoadedSnapshot, Snapshot};
pub use source_directory::{SourceDirectory, SourceDirectoryError};
