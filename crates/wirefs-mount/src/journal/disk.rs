//! The disk that a journal is on: what is done to it that takes time.

use super::place::segment_path;
use crate::sys;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use wirefs_journal::Header;
use wirefs_journal::limits::SEGMENT_BYTES;

/// Whether room is all that is missing.
pub(super) fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// What a journal asks of its disk, beside taking bytes.
pub(super) trait Disk: Send + Sync {
    /// Makes a segment with this header, and hands back the sum of that as well. What cannot be made whole is not left there.
    fn make(&self, header: &Header) -> io::Result<(File, u32)>;
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

/// Makes room for all of a segment where the file system can: so syncing it later changes no sizes.
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
