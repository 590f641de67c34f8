//! Objects that are made, from before they can be seen until it is known which they are.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How often somebody who would promise something looks whether all births are over: one takes some 20 us, and without a
/// promise the client asks again.
const LOOKS_MAX: usize = 64;

/// How many objects are being made.
#[derive(Debug, Default)]
pub(crate) struct Births(AtomicUsize);

/// While it lives, something that nobody knows may be there.
#[must_use]
pub(crate) struct Birth<'a>(&'a Births);

impl Births {
    /// An object is about to be made. The end is when the server knows that it is touched.
    pub(crate) fn begin(&self) -> Birth<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Birth(self)
    }

    /// Whether whatever can be seen by now is known to the server, if it is about to be changed by who made it.
    pub(crate) fn are_known(&self) -> bool {
        (0..LOOKS_MAX).any(|look| {
            if look > 0 {
                std::thread::yield_now();
            }
            self.0.load(Ordering::SeqCst) == 0
        })
    }
}

impl Drop for Birth<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
