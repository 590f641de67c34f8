//! One file of the log.

use super::DiskFault;
use super::record::{self, BODY_BYTES_MAX, HEAD_BYTES, Head, Kind, ROOT_BYTES};
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The amount of a damaged file that is scanned at a time, in bytes.
const WINDOW_BYTES: usize = 1024 * 1024;

/// A file of the log.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) file: Arc<File>,
    /// The offset of the next record, in bytes.
    pub(super) end: u64,
}

/// The position of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordAt {
    pub(super) head: Head,
    /// The offset of the body, in bytes.
    pub(super) body_at: u64,
}

impl Segment {
    pub(super) fn path(directory: &Path, number: u64) -> PathBuf {
        directory.join(format!("{number:010}.log"))
    }

    /// Returns the number in a file name.
    pub(super) fn number_of(name: &str) -> Option<u64> {
        name.strip_suffix(".log").and_then(|number| number.parse().ok())
    }

    pub(super) fn open(directory: &Path, number: u64) -> Result<Segment, DiskFault> {
        let path = Segment::path(directory, number);
        let file = File::options().read(true).write(true).open(&path).map_err(DiskFault::system(&path))?;
        let end = file.metadata().map_err(DiskFault::system(&path))?.len();
        Ok(Segment { number, file: Arc::new(file), end })
    }

    /// Creates an empty file; an existing one is truncated, since it has no complete record.
    pub(super) fn create(directory: &Path, number: u64) -> io::Result<Segment> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = Arc::new(file.open(Segment::path(directory, number))?);
        // The directory entry must be durable before later records are.
        File::open(directory)?.sync_all()?;
        Ok(Segment { number, file, end: 0 })
    }

    /// Returns the records up to the end or to the first incomplete one. Bodies are verified only on request.
    ///
    /// # Errors
    /// The file cannot be read. This says nothing about its contents.
    pub(super) fn records(&self, with_bodies: bool) -> io::Result<Vec<RecordAt>> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(head) = self.head(at)? {
            let body_at = at + HEAD_BYTES as u64;
            at += head.record_bytes();
            if at > self.end || (with_bodies && self.body(body_at, &head)?.is_none()) {
                break;
            }
            found.push(RecordAt { head, body_at });
        }
        Ok(found)
    }

    fn head(&self, at: u64) -> io::Result<Option<Head>> {
        if at + HEAD_BYTES as u64 > self.end {
            return Ok(None);
        }
        let mut bytes = [0; HEAD_BYTES];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(Head::decode(self.number, &bytes))
    }

    /// Returns a body; `None` if it does not match its checksum.
    pub(super) fn body(&self, at: u64, head: &Head) -> io::Result<Option<Bytes>> {
        let mut bytes = vec![0; (head.len as usize).min(BODY_BYTES_MAX)];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(head.is_body(&bytes).then(|| Bytes::from(bytes)))
    }

    /// Returns the synced length according to complete root records at or after `from`, at any offset.
    pub(super) fn synced_behind(&self, from: u64) -> io::Result<u64> {
        let mut synced = 0;
        let mut at = from;
        while at < self.end {
            let len = usize::try_from(self.end - at).unwrap_or(WINDOW_BYTES).min(WINDOW_BYTES);
            let mut window = vec![0; len];
            self.file.read_exact_at(&mut window, at)?;
            synced = window
                .windows(ROOT_BYTES)
                .filter_map(|record| record::synced_of_root(self.number, record))
                .fold(synced, u64::max);
            // A record across the border of a window is found in the next one.
            at += len.saturating_sub(ROOT_BYTES - 1).max(1) as u64;
        }
        Ok(synced)
    }
}

impl RecordAt {
    /// The offset of the next record.
    pub(super) fn end(&self) -> u64 {
        self.body_at + u64::from(self.head.len)
    }

    pub(super) fn is(&self, kind: Kind) -> bool {
        self.head.kind == kind
    }
}
