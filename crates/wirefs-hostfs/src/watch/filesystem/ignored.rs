//! Busy files without leases. The kernel suppresses their events (an ignore mark, `fanotify_mark(2)`), so that a
//! log or a database does not wake the server some 250 times per second.
//!
//! ```text
//!  reported in BUSY_ROUNDS of PERIOD rounds --> ignored: no events, no leases --> a client reads it
//!    --> not ignored any more, leased from the next read on
//! ```
//!
//! INVARIANT: no client holds a lease on an ignored file. A file is entered here before the kernel ignores it, and
//! is reported once more afterwards, which recalls its leases. Leases are granted under the read lock, and only on
//! files that are not entered. Only contents and attributes of regular files are ignored; changes of names are
//! reported.

use super::{Filesystem, Handle, OBJECT_ATTRIBUTES};
use crate::attributes::{self, proc_path};
use crate::sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use wirefs_op::{FileId, Kind};

/// Rounds of one period in which a file must be reported to become ignored.
const BUSY_ROUNDS: u32 = 64;
/// Rounds after which the counts start again.
const PERIOD: u32 = 256;
/// Files that are counted in one period.
const COUNTED_MAX: usize = 4096;
/// Ignored files at most. Their marks do not pin them in the kernel's memory.
const IGNORED_MAX: usize = 1 << 14;

/// The mark survives changes, but is evictable: Linux 5.19 and newer. Older kernels ignore nothing.
const IGNORE: u32 =
    libc::FAN_MARK_IGNORED_MASK | libc::FAN_MARK_IGNORED_SURV_MODIFY | libc::FAN_MARK_EVICTABLE;

/// The ignored files, with the handles that are needed to remove their marks.
#[derive(Debug, Default)]
pub(super) struct Ignored(RwLock<HashMap<FileId, Handle>>);

/// The ignored files during a grant of leases: none is added until this is dropped.
#[derive(Debug)]
pub(crate) struct IgnoredFiles<'a>(RwLockReadGuard<'a, HashMap<FileId, Handle>>);

impl IgnoredFiles<'_> {
    pub(crate) fn contains(&self, id: FileId) -> bool {
        self.0.contains_key(&id)
    }
}

impl Filesystem {
    /// See [`crate::watch::Watcher::ignored`].
    pub(crate) fn ignored(&self) -> IgnoredFiles<'_> {
        IgnoredFiles(self.ignored.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// See [`crate::watch::Watcher::stop_ignoring`].
    pub(crate) fn stop_ignoring(&self, ids: &[FileId]) {
        let mut ignored = self.ignored.0.write().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            let Some(handle) = ignored.get(id) else {
                continue;
            };
            // The mark may be gone with the file, or may have been evicted.
            if let Some(file) = self.open_handle(handle) {
                let _ = self.set_ignored(&file, libc::FAN_MARK_REMOVE);
            }
            ignored.remove(id);
        }
    }

    /// Makes the kernel ignore a regular file on the export's file system. Returns whether it does; then the file
    /// must be reported once more.
    pub(super) fn ignore(&self, handle: &Handle, id: FileId) -> bool {
        let Some(file) = self.open_handle(handle) else {
            return false;
        };
        let is_file = attributes::statx(file.as_fd(), c"").is_ok_and(|statx| {
            attributes::kind(&statx) == Kind::File && attributes::file_id(&statx, self.home) == id
        });
        if !is_file || id.fs != 0 {
            return false;
        }
        // Locked until the kernel ignores the file, so that no other thread removes it from the table meanwhile.
        let mut ignored = self.ignored.0.write().unwrap_or_else(PoisonError::into_inner);
        if ignored.len() >= IGNORED_MAX && !ignored.contains_key(&id) {
            return false;
        }
        ignored.insert(id, handle.clone());
        // If it fails, the file stays in the table and is reported further. It is not leased until a client reads
        // it.
        self.set_ignored(&file, libc::FAN_MARK_ADD).is_ok()
    }

    fn open_handle(&self, handle: &Handle) -> Option<OwnedFd> {
        let entry = self.entry_of(handle)?;
        sys::open_by_handle(entry.as_fd(), handle.kind, &handle.bytes).ok()
    }

    fn set_ignored(&self, file: &OwnedFd, action: u32) -> Result<(), Errno> {
        let path =
            CString::new(proc_path(file.as_fd()).into_os_string().into_vec()).map_err(|_| Errno::INVAL)?;
        sys::fanotify_mark_path(self.queue.as_fd(), action | IGNORE, OBJECT_ATTRIBUTES, &path)
    }
}

/// The number of recent reports per file.
#[derive(Debug, Default)]
pub(super) struct Busy {
    rounds: u32,
    counts: HashMap<FileId, u32>,
}

impl Busy {
    /// Begins a round.
    pub(super) fn begin(&mut self) {
        self.rounds += 1;
        if self.rounds >= PERIOD {
            *self = Busy::default();
        }
    }

    /// Counts a report. Returns whether the file has just become busy.
    pub(super) fn count(&mut self, id: FileId) -> bool {
        if self.counts.len() >= COUNTED_MAX && !self.counts.contains_key(&id) {
            return false;
        }
        let count = self.counts.entry(id).or_default();
        *count += 1;
        *count == BUSY_ROUNDS
    }
}

#[cfg(test)]
mod tests;
