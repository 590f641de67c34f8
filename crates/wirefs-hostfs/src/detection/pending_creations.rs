//! Creations in progress: from before the object is visible until its id is known.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Checks for the end of all creations before a lease is refused. A creation takes some 20 µs; without a lease the
/// client validates again.
const LOOKS_MAX: usize = 64;

/// The number of creations in progress.
#[derive(Debug, Default)]
pub(crate) struct PendingCreations(AtomicUsize);

/// A creation in progress: an object of unknown id may be visible.
#[must_use]
pub(crate) struct PendingCreation<'a>(&'a PendingCreations);

impl PendingCreations {
    /// Begins a creation. It ends when the server core knows that the object is touched.
    pub(crate) fn begin(&self) -> PendingCreation<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        PendingCreation(self)
    }

    /// Waits briefly until no creation is in progress. Returns false if there still is one.
    pub(crate) fn are_finished(&self) -> bool {
        (0..LOOKS_MAX).any(|look| {
            if look > 0 {
                std::thread::yield_now();
            }
            self.0.load(Ordering::SeqCst) == 0
        })
    }
}

impl Drop for PendingCreation<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
