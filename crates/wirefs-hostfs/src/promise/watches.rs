//! Watches that nobody relies on are let go, and nobody relies on one that was.
//!
//! Between the beginning of a watch and the promise that stands on it, another thread may find that the object is known to
//! nobody and end the watch. So letting go is counted: whoever would promise something looks whether the count is still what
//! it was before the watch began, and nothing is let go while it looks and promises. A watch that begins again is counted as well: a
//! request that read before it did promises nothing.

use std::cell::Cell;
use std::sync::{PoisonError, RwLock};
use wirefs_op::FileId;

/// Objects that are asked about at once.
const BATCH: usize = 1024;

/// How often watches were let go.
#[derive(Debug, Default)]
pub(crate) struct Watches(RwLock<u64>);

thread_local! {
    /// The count when this thread's request began.
    static BEGUN: Cell<u64> = const { Cell::new(0) };
}

impl Watches {
    /// This thread begins a request: what it sees to from now on is watched until it promises something, or it promises
    /// nothing.
    pub(crate) fn begin(&self) {
        BEGUN.set(*self.0.read().unwrap_or_else(PoisonError::into_inner));
    }

    /// Promises something, unless watches were let go since the request began.
    pub(crate) fn promise(&self, promise: impl FnOnce()) {
        let count = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if *count == BEGUN.get() {
            promise();
        }
    }

    /// Begins watches again: nothing that was read before is promised.
    pub(crate) fn begin_anew(&self, watch: impl FnOnce()) {
        let mut count = self.0.write().unwrap_or_else(PoisonError::into_inner);
        watch();
        *count += 1;
    }

    /// Lets go of those of `watched` that nobody knows.
    pub(crate) fn trim(
        &self,
        watched: &[FileId],
        known: &dyn Fn(&[FileId]) -> Vec<bool>,
        mut unwatch: impl FnMut(FileId),
    ) {
        if watched.is_empty() {
            return;
        }
        let mut count = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for batch in watched.chunks(BATCH) {
            let unknown = batch.iter().zip(known(batch)).filter(|(_, is_known)| !is_known);
            unknown.for_each(|(id, _)| unwatch(*id));
        }
        *count += 1;
    }
}

#[cfg(test)]
mod tests;
