//! A peer in the same process, reached by calls: no thread wake-up on either way.

use std::sync::Arc;

use bytes::Bytes;
use wirefs_op::Frame;

/// Processes the body of one message from the peer. Returns `false` if it takes no more.
pub type FrameHandler = Arc<dyn Fn(Bytes) -> bool + Send + Sync>;

/// A peer in the same process. Callable from many threads; frames are processed in the order in which they were pushed.
pub trait InProcessPeer: Send + Sync {
    /// Queues a frame; [`flush`](Self::flush) has it processed. Cheap, never blocks, makes no calls: may be called
    /// under the lock that fixes the order.
    fn push(&self, frame: Frame);

    /// Has the peer take the queued frames, and processes them in this thread, unless `helpers_max` threads already do
    /// so: then the peer's own threads process them.
    ///
    /// # Cost
    /// The processing time of the requests. With a `helpers_max` of 0: a wake-up of another thread.
    fn flush(&self, helpers_max: usize);

    /// Returns whether a thread that processes requests in [`flush`](Self::flush) announces that it is about to block
    /// or to take long.
    fn announces_blocking(&self) -> bool {
        false
    }

    /// From now on calls `handler` with each message of the peer, in the thread that has it, one at a time. Messages
    /// that arrived before are passed first. Without a handler they come from the carrier's
    /// [`FrameSource`](crate::FrameSource).
    fn set_handler(&self, handler: FrameHandler);
}
