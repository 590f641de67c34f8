//! Busy files that no client knows. The kernel leaves out their changes (an ignore mark, `fanotify_mark(2)`), so that a log or a
//! database that programs keep writing to does not wake the server some 250 times a second.
//!
//! ```text
//!  reported in BUSY_ROUNDS of PERIOD rounds --> ignored: no events, no leases --> a client asks --> heard again, leased from the next look on
//! ```
//!
//! INVARIANT: no client holds a lease on an ignored file. A file is entered here before the kernel ignores it and reported as changed
//! once more after that, which recalls the leases given until then; a lease is given under the read lock, to what is not entered.
//! Only contents and attributes of regular files are ignored: names, removals and moves are reported as ever.

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

/// Rounds of one period in which a file is reported before it is ignored.
const BUSY_ROUNDS: u32 = 64;
/// Rounds after which counting begins anew.
const PERIOD: u32 = 256;
/// Files that are counted in one period.
const COUNTED_MAX: usize = 4096;
/// Files that are ignored at once. Their marks do not keep them in the kernel's memory.
const IGNORED_MAX: usize = 1 << 14;

/// Ignored without a limit of time, but not at the price of memory: Linux 5.19 and newer; where it is not to be had nothing is ignored.
const IGNORE: u32 =
    libc::FAN_MARK_IGNORED_MASK | libc::FAN_MARK_IGNORED_SURV_MODIFY | libc::FAN_MARK_EVICTABLE;

/// The ignored files, each with what it takes to hear of it again.
#[derive(Debug, Default)]
pub(super) struct Ignored(RwLock<HashMap<FileId, Handle>>);

/// The ignored files while leases are given: until it is dropped none is added.
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

    /// See [`crate::watch::Watcher::hear_again`].
    pub(crate) fn hear_again(&self, ids: &[FileId]) {
        let mut ignored = self.ignored.0.write().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            let Some(handle) = ignored.get(id) else {
                continue;
            };
            // A mark that went with the file, or out of the kernel's memory, is not there to be removed.
            if let Some(file) = self.open_handle(handle) {
                let _ = self.set_ignored(&file, libc::FAN_MARK_REMOVE);
            }
            ignored.remove(id);
        }
    }

    /// Has the kernel leave out a regular file of the export's own file system. `true`: it does, and the file must be reported as changed
    /// once more.
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
        // Locked until the kernel ignores it: nobody may take it out in between.
        let mut ignored = self.ignored.0.write().unwrap_or_else(PoisonError::into_inner);
        if ignored.len() >= IGNORED_MAX && !ignored.contains_key(&id) {
            return false;
        }
        ignored.insert(id, handle.clone());
        // Where it fails the file stays entered and goes on to be reported: nobody is promised anything about it until it is asked for.
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

/// How often files were reported of late.
#[derive(Debug, Default)]
pub(super) struct Busy {
    rounds: u32,
    counts: HashMap<FileId, u32>,
}

impl Busy {
    /// A round begins.
    pub(super) fn begin(&mut self) {
        self.rounds += 1;
        if self.rounds >= PERIOD {
            *self = Busy::default();
        }
    }

    /// A file was reported, once in this round. `true`: it is busy from now on.
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
