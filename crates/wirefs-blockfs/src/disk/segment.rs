//! One file of the log.

use super::DiskFault;
use super::record::{self, BODY_BYTES_MAX, HEAD_BYTES, Head, Kind, ROOT_BYTES};
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a damaged file that are looked through at a time.
const WINDOW_BYTES: usize = 1024 * 1024;

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
    pub(super) fn create(directory: &Path, number: u64) -> io::Result<Segment> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = Arc::new(file.open(Segment::path(directory, number))?);
        // The name must be there after a crash when what comes behind it is.
        File::open(directory)?.sync_all()?;
        Ok(Segment { number, file, end: 0 })
    }

    /// The records from the beginning, to the end or to the first that is not whole. Bodies are looked at only where that
    /// is asked.
    ///
    /// # Errors
    /// The file cannot be read: that says nothing of what is in it.
    pub(super) fn records(&self, with_bodies: bool) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(head) = self.head(at)? {
            let body_at = at + HEAD_BYTES as u64;
            at += head.record_bytes();
            if at > self.end || (with_bodies && self.body(body_at, &head)?.is_none()) {
                break;
            }
            found.push(Found { head, body_at });
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

    /// A body; `None` when it is not what was written.
    pub(super) fn body(&self, at: u64, head: &Head) -> io::Result<Option<Bytes>> {
        let mut bytes = vec![0; (head.len as usize).min(BODY_BYTES_MAX)];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(head.is_body(&bytes).then(|| Bytes::from(bytes)))
    }

    /// How much of the file was synced, as the whole roots at `from` and behind it tell, wherever they stand.
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
            // One that stands across the end of the window is in the next one.
            at += len.saturating_sub(ROOT_BYTES - 1).max(1) as u64;
        }
        Ok(synced)
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
