//! Closing a carrier from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::limits::LINGERING_MAX;
use crate::place::CountedPlace;

/// The threads in this process that linger.
static LINGERING: AtomicUsize = AtomicUsize::new(0);

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
    linger: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Closer {
    /// Returns a closer that runs `shut` at its first [`close`](Self::close). The effect of `shut` must be permanent: a
    /// `receive` that starts later must return at once.
    pub fn new(shut: impl Fn() + Send + Sync + 'static) -> Self {
        Self::of(Box::new(shut), None)
    }

    /// Returns a closer that also has [`close_lingering`](Self::close_lingering): `linger` ends the sending, and returns
    /// once the peer has closed, or a limit is reached.
    pub(crate) fn lingering(
        shut: impl Fn() + Send + Sync + 'static,
        linger: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self::of(Box::new(shut), Some(Box::new(linger)))
    }

    fn of(shut: Box<dyn Fn() + Send + Sync>, linger: Option<Box<dyn Fn() + Send + Sync>>) -> Self {
        let (closed, aborted) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { inner: Arc::new(Inner { closed, aborted, shut, linger }) }
    }

    /// Closes the carrier. Later calls do nothing.
    pub fn close(&self) {
        if !self.inner.closed.swap(true, Ordering::SeqCst) {
            (self.inner.shut)();
        }
    }

    /// Closes the carrier so that the peer can read all that was sent: ends the sending, and drops what the peer still
    /// sends until it closes, for a bounded time and amount. A close with unread bytes would reset the connection, and
    /// the peer would get an error in place of the last message.
    ///
    /// # Cost
    /// A thread until the peer has closed, 5 s at most. With 64 such threads in the process, or without a thread, it is
    /// a plain close.
    pub fn close_lingering(&self) {
        if self.inner.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        let take = || CountedPlace::take(&LINGERING, LINGERING_MAX);
        let place = self.inner.linger.is_some().then(take).flatten();
        let inner = Arc::clone(&self.inner);
        let started = place.is_some_and(|place| {
            let lingering = move || {
                inner.linger.as_ref().inspect(|linger| linger());
                (inner.shut)();
                drop(place);
            };
            std::thread::Builder::new().name("wirefs-linger".into()).spawn(lingering).is_ok()
        });
        if !started {
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
