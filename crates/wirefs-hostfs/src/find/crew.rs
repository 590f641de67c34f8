//! How many threads read ahead, all streams together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that read ahead for streams, at most.
const HELPERS_MAX: usize = 16;

/// The threads that read ahead at present. A stream that gets none reads for itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crew(Arc<AtomicUsize>);

/// The place of one such thread.
#[derive(Debug)]
pub(super) struct Helper(Arc<AtomicUsize>);

impl Crew {
    /// A place for one more, if there is one.
    pub(super) fn take(&self) -> Option<Helper> {
        let helper = Helper(Arc::clone(&self.0));
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        (before < HELPERS_MAX).then_some(helper)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
