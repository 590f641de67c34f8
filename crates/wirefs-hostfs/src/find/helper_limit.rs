//! The limit of helper threads for all streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Helper threads of all streams.
const HELPERS_MAX: usize = 16;

/// The number of helper threads. A stream without helpers reads in its own thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct HelperLimit(Arc<AtomicUsize>);

/// Permission for one helper thread.
#[derive(Debug)]
pub(super) struct Helper(Arc<AtomicUsize>);

impl HelperLimit {
    /// Takes permission for one more, if the limit allows it.
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
