//! One change of a file's contents at a time, over all sessions, so that "before" and "after" in a reply enclose that
//! change and no other client's.

use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::FileId;

/// Files share this many turns; two that share one wait for each other now and then, no more.
const STRIPES: usize = 256;

/// The turns. What is slow beside the change itself (waiting for the disk) happens outside of them.
#[derive(Debug)]
pub(crate) struct Changes {
    stripes: Vec<Mutex<()>>,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes { stripes: (0..STRIPES).map(|_| Mutex::default()).collect() }
    }
}

impl Changes {
    /// A turn to change the contents of this file. INVARIANT: a request takes one turn at most, so turns never wait in a
    /// circle.
    pub(crate) fn turn(&self, id: FileId) -> Option<MutexGuard<'_, ()>> {
        let stripe = self.stripes.get(id.ino as usize % STRIPES)?;
        Some(stripe.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
