//! Ending a carrier from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends one carrier: wakes its `receive` and its `wait_writable`, tells the peer, ends a child. Cheap to clone; all
/// clones are the same closer.
#[derive(Clone)]
pub struct Closer {
    inner: Arc<Inner>,
}

struct Inner {
    closed: AtomicBool,
    given_up: AtomicBool,
    shut: Box<dyn Fn() + Send + Sync>,
}

impl Closer {
    /// Makes a closer that runs `shut` at its first [`close`](Self::close). What `shut` does must last: a `receive`
    /// that starts after it must return at once.
    pub fn new(shut: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            inner: Arc::new(Inner {
                closed: AtomicBool::new(false),
                given_up: AtomicBool::new(false),
                shut: Box::new(shut),
            }),
        }
    }

    /// Ends the carrier. Later calls do nothing.
    pub fn close(&self) {
        if !self.inner.closed.swap(true, Ordering::SeqCst) {
            (self.inner.shut)();
        }
    }

    /// Ends the carrier, as [`close`](Self::close) does, because it is dead though nobody said so.
    pub fn give_up(&self) {
        if !self.is_closed() {
            self.inner.given_up.store(true, Ordering::SeqCst);
        }
        self.close();
    }

    /// Whether it was ended for being dead.
    pub fn is_given_up(&self) -> bool {
        self.inner.given_up.load(Ordering::SeqCst)
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.inner.closed.load(Ordering::SeqCst)
    }
}

impl std::fmt::Debug for Closer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Closer").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}
