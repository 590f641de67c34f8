//! The disk that a journal is on: what is done to it that takes time.

use super::place::segment_path;
use crate::sys;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// What a journal asks of its disk, beside taking bytes.
pub(super) trait Disk: Send + Sync {
    /// Waits until the names of all segments are on it.
    fn sync_names(&self) -> io::Result<()>;
    /// Waits until all that was written to a segment is on it, and says of any of it that it is not.
    fn sync(&self, segment: &File) -> io::Result<()>;
    /// Has it begin to write some of a segment, and waits for none of it. What goes wrong with that later, the next sync of this file says.
    fn begin(&self, segment: &File, bytes: Range<u64>) -> io::Result<()>;
    /// Takes away the name of a segment, where it is there.
    fn remove(&self, number: u64) -> io::Result<()>;
}

/// A directory of this machine.
pub(super) struct Local(pub(super) PathBuf);

impl Disk for Local {
    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    fn sync(&self, segment: &File) -> io::Result<()> {
        segment.sync_data()
    }

    fn begin(&self, segment: &File, bytes: Range<u64>) -> io::Result<()> {
        sys::begin_writing(segment, bytes)
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        match std::fs::remove_file(segment_path(&self.0, number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}
