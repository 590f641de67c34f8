//! Generations of watches, so that no lease rests on a released watch.
//!
//! Between the start of a watch and the grant of a lease, another thread may see that the object has no lease and
//! release the watch. Therefore each release starts a new generation. A request grants leases only in the
//! generation in which it began, and no watch is released during a grant. A restart of watches also starts a new
//! generation: data read before is not leased.

use std::cell::Cell;
use std::sync::{PoisonError, RwLock};
use wirefs_op::FileId;

/// Objects in one query for leases.
const BATCH: usize = 1024;

/// The number of the generation.
#[derive(Debug, Default)]
pub(crate) struct WatchGeneration(RwLock<u64>);

thread_local! {
    /// The generation in which this thread's request began.
    static REQUEST_GENERATION: Cell<u64> = const { Cell::new(0) };
}

impl WatchGeneration {
    /// Begins a request on this thread. Its watches stay until it grants leases, or it grants none.
    pub(crate) fn begin_request(&self) {
        REQUEST_GENERATION.set(*self.0.read().unwrap_or_else(PoisonError::into_inner));
    }

    /// Runs `grant`, unless a new generation has started since the request began.
    pub(crate) fn if_current(&self, grant: impl FnOnce()) {
        let generation = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if *generation == REQUEST_GENERATION.get() {
            grant();
        }
    }

    /// Restarts watches in a new generation.
    pub(crate) fn advance(&self, watch: impl FnOnce()) {
        let mut generation = self.0.write().unwrap_or_else(PoisonError::into_inner);
        watch();
        *generation += 1;
    }

    /// Releases those of `watched` that have no lease.
    pub(crate) fn trim(
        &self,
        watched: &[FileId],
        leased: &dyn Fn(&[FileId]) -> Vec<bool>,
        mut unwatch: impl FnMut(FileId),
    ) {
        if watched.is_empty() {
            return;
        }
        let mut generation = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for batch in watched.chunks(BATCH) {
            let unleased = batch.iter().zip(leased(batch)).filter(|(_, is_leased)| !is_leased);
            unleased.for_each(|(id, _)| unwatch(*id));
        }
        *generation += 1;
    }
}

#[cfg(test)]
mod tests;
