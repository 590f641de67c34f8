//! One file of the log.

use super::DiskFault;
use super::record::{BODY_BYTES_MAX, HEAD_BYTES, Head, Kind};
use bytes::Bytes;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of the log, and how much of it is used.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) file: Arc<File>,
    /// Where the next record goes, in bytes.
    pub(super) end: u64,
}

/// A record that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) head: Head,
    /// Where its body begins.
    pub(super) body_at: u64,
}

impl Segment {
    pub(super) fn path(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("{number:010}.log"))
    }

    /// The number in a file's name.
    pub(super) fn number_of(name: &str) -> Option<u64> {
        name.strip_suffix(".log").and_then(|number| number.parse().ok())
    }

    pub(super) fn open(directory: &Path, number: u64) -> Result<Segment, DiskFault> {
        let path = Segment::path(directory, number);
        let file = File::options().read(true).write(true).open(&path).map_err(DiskFault::system(&path))?;
        let end = file.metadata().map_err(DiskFault::system(&path))?.len();
        Ok(Segment { number, file: Arc::new(file), end })
    }

    /// A file without records; one that is there is of no use to anybody.
    pub(super) fn create(directory: &Path, number: u64) -> std::io::Result<Segment> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = Arc::new(file.open(Segment::path(directory, number))?);
        // The name must be there after a crash when what comes behind it is.
        File::open(directory)?.sync_all()?;
        Ok(Segment { number, file, end: 0 })
    }

    /// The records from the beginning, to the end or to the first that is not whole. Bodies are looked at only where that
    /// is asked.
    pub(super) fn records(&self, with_bodies: bool) -> Vec<Found> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(head) = self.head(at) {
            let body_at = at + HEAD_BYTES as u64;
            at += head.record_bytes();
            if at > self.end || (with_bodies && self.body(body_at, &head).is_none()) {
                break;
            }
            found.push(Found { head, body_at });
        }
        found
    }

    fn head(&self, at: u64) -> Option<Head> {
        let mut bytes = [0; HEAD_BYTES];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Head::decode(self.number, &bytes)
    }

    /// A body, if it is what was written.
    pub(super) fn body(&self, at: u64, head: &Head) -> Option<Bytes> {
        let mut bytes = vec![0; (head.len as usize).min(BODY_BYTES_MAX)];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        head.is_body(&bytes).then(|| Bytes::from(bytes))
    }
}

impl Found {
    /// Where the next record begins.
    pub(super) fn end(&self) -> u64 {
        self.body_at + u64::from(self.head.len)
    }

    pub(super) fn is(&self, kind: Kind) -> bool {
        self.head.kind == kind
    }
}
