//! Closing a carrier from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Closes one carrier: wakes its `receive` and its `wait_writable`, notifies the peer, ends a child process. Cheap to
/// clone; all clones are the same closer.
#[derive(Clone)]
pub struct Closer {
    inner: Arc<Inner>,
}

struct Inner {
    closed: AtomicBool,
    aborted: AtomicBool,
    shut: Box<dyn Fn() + Send + Sync>,
}

impl Closer {
    /// Returns a closer that runs `shut` at its first [`close`](Self::close). The effect of `shut` must be permanent: a
    /// `receive` that starts later must return at once.
    pub fn new(shut: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            inner: Arc::new(Inner {
                closed: AtomicBool::new(false),
                aborted: AtomicBool::new(false),
                shut: Box::new(shut),
            }),
        }
    }

    /// Closes the carrier. Later calls do nothing.
    pub fn close(&self) {
        if !self.inner.closed.swap(true, Ordering::SeqCst) {
            (self.inner.shut)();
        }
    }

    /// Closes the carrier because it is dead, although neither side closed it.
    pub fn abort(&self) {
        if !self.is_closed() {
            self.inner.aborted.store(true, Ordering::SeqCst);
        }
        self.close();
    }

    /// Returns whether it was closed by [`abort`](Self::abort).
    pub fn is_aborted(&self) -> bool {
        self.inner.aborted.load(Ordering::SeqCst)
    }

    /// Returns whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.inner.closed.load(Ordering::SeqCst)
    }
}

impl std::fmt::Debug for Closer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Closer").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}
