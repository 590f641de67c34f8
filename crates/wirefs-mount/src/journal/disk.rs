//! The slow operations on the journal's disk.

use super::place::segment_path;
use crate::sys;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use wirefs_journal::Header;
use wirefs_journal::limits::SEGMENT_BYTES;

/// Returns whether an error means a full disk.
pub(super) fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The operations on the journal's disk, except writing.
pub(super) trait Disk: Send + Sync {
    /// Creates a segment with this header, and returns the header's checksum as well. Removes an incomplete one.
    fn make(&self, header: &Header) -> io::Result<(File, u32)>;
    /// Syncs the directory.
    fn sync_names(&self) -> io::Result<()>;
    /// Syncs a segment. Reports any write error since the last sync.
    fn sync(&self, segment: &File) -> io::Result<()>;
    /// Starts the write-out of a range, without waiting. The next sync reports its errors.
    fn begin(&self, segment: &File, bytes: Range<u64>) -> io::Result<()>;
    /// Removes a segment, if it exists.
    fn remove(&self, number: u64) -> io::Result<()>;
}

/// A directory of this machine.
pub(super) struct Local(pub(super) PathBuf);

impl Disk for Local {
    fn make(&self, header: &Header) -> io::Result<(File, u32)> {
        let path = segment_path(&self.0, header.segment);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
        fill(File::from(file), header).inspect_err(|_| {
            let _none_left = std::fs::remove_file(path);
        })
    }

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

/// Allocates a whole segment, if the file system can: so a later sync changes no file size.
fn fill(mut file: File, header: &Header) -> io::Result<(File, u32)> {
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, SEGMENT_BYTES) {
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let bytes = header.encode();
    file.write_all(&bytes)?;
    let (_, _, salt) = Header::decode(&bytes).map_err(io::Error::other)?;
    Ok((file, salt))
}
