//! Locks around changes, over all sessions. One change of a file's contents at a time, so that the versions
//! "before" and "after" in a reply enclose only this change. One change of a directory's names at a time, if own
//! changes are recognized by these versions.

use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::FileId;

/// Locks for files, and as many for directories. Two objects with the same lock only wait for each other.
const STRIPES: usize = 256;

/// The locks. They are not held while a change waits for the disk.
#[derive(Debug)]
pub(crate) struct Changes {
    contents: Vec<Mutex<()>>,
    names: Vec<Mutex<()>>,
}

impl Default for Changes {
    fn default() -> Changes {
        let stripes = || (0..STRIPES).map(|_| Mutex::default()).collect();
        Changes { contents: stripes(), names: stripes() }
    }
}

impl Changes {
    /// Locks the contents of this file. INVARIANT: a request holds at most one lock of either kind at a time,
    /// except for two directories, so there is no deadlock.
    pub(crate) fn lock_contents(&self, id: FileId) -> Option<MutexGuard<'_, ()>> {
        lock(&self.contents, stripe(id))
    }

    /// Locks the names of these directories.
    pub(crate) fn lock_names(&self, dirs: [FileId; 2]) -> [Option<MutexGuard<'_, ()>>; 2] {
        // INVARIANT: two locks are always taken in ascending order.
        let [mut first, mut second] = dirs.map(stripe);
        if first > second {
            std::mem::swap(&mut first, &mut second);
        }
        [lock(&self.names, first), (first != second).then(|| lock(&self.names, second)).flatten()]
    }
}

fn stripe(id: FileId) -> usize {
    id.ino as usize % STRIPES
}

fn lock(stripes: &[Mutex<()>], stripe: usize) -> Option<MutexGuard<'_, ()>> {
    Some(stripes.get(stripe)?.lock().unwrap_or_else(PoisonError::into_inner))
}
