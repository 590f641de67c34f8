//! A bound on things of one kind in this process.

use std::sync::atomic::{AtomicUsize, Ordering};

/// One of a bounded number of places, free again when dropped.
#[derive(Debug)]
pub(crate) struct CountedPlace {
    taken: &'static AtomicUsize,
}

impl CountedPlace {
    /// Takes a place; `None` if `max` are taken. `taken` counts them.
    pub(crate) fn take(taken: &'static AtomicUsize, max: usize) -> Option<CountedPlace> {
        let count = |count| (count < max).then_some(count + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).ok().map(|_| CountedPlace { taken })
    }
}

impl Drop for CountedPlace {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
