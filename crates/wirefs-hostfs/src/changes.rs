//! One change of a file's contents at a time, over all sessions, so that "before" and "after" in a reply enclose that
//! change and no other client's. And one change of a directory's names at a time, where own changes are recognised by the
//! versions before and after them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::FileId;

/// Files share this many turns, and directories as many; two that share one wait for each other now and then, no more.
const STRIPES: usize = 256;

/// The turns. What is slow beside the change itself (waiting for the disk) happens outside of them.
#[derive(Debug)]
pub(crate) struct Changes {
    stripes: Vec<Mutex<()>>,
    names: Vec<Mutex<()>>,
}

impl Default for Changes {
    fn default() -> Changes {
        let stripes = || (0..STRIPES).map(|_| Mutex::default()).collect();
        Changes { stripes: stripes(), names: stripes() }
    }
}

impl Changes {
    /// A turn to change the contents of this file. INVARIANT: a request has one turn at a time, of this kind or the other, so
    /// turns never wait in a circle.
    pub(crate) fn turn(&self, id: FileId) -> Option<MutexGuard<'_, ()>> {
        take(&self.stripes, stripe(id))
    }

    /// A turn to change names of these directories.
    pub(crate) fn turn_of_names(&self, dirs: [FileId; 2]) -> [Option<MutexGuard<'_, ()>>; 2] {
        // Two are always taken in one order.
        let [mut first, mut second] = dirs.map(stripe);
        if first > second {
            std::mem::swap(&mut first, &mut second);
        }
        [take(&self.names, first), (first != second).then(|| take(&self.names, second)).flatten()]
    }
}

fn stripe(id: FileId) -> usize {
    id.ino as usize % STRIPES
}

fn take(stripes: &[Mutex<()>], stripe: usize) -> Option<MutexGuard<'_, ()>> {
    Some(stripes.get(stripe)?.lock().unwrap_or_else(PoisonError::into_inner))
}
