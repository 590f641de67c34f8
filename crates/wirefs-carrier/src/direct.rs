//! A peer in this process: it is reached by a call, and no thread has to be woken on the way there or back.

use std::sync::Arc;

use bytes::Bytes;
use wirefs_op::Frame;

/// Takes the body of one message from the peer. False: it takes no more.
pub type Hear = Arc<dyn Fn(Bytes) -> bool + Send + Sync>;

/// The way to a peer of this process. Many threads may use it; frames are taken in the order in which they were pushed.
pub trait Direct: Send + Sync {
    /// Queues a frame; [`flush`](Self::flush) has it taken. Cheap, never blocks, calls nobody: may be called under the lock
    /// that fixes the order.
    fn push(&self, frame: Frame);

    /// Has the peer take what is queued, and carries out in this thread what came of it, unless `helpers_max` threads do so
    /// already: then the peer's own threads do.
    ///
    /// # Cost
    /// As long as the requests take. With a `helpers_max` of 0: a wake-up of another thread.
    fn flush(&self, helpers_max: usize);

    /// Whether a thread that carries something out in [`flush`](Self::flush) says so before it waits, or takes its time.
    fn says_before_waiting(&self) -> bool {
        false
    }

    /// From now on calls `hear` with what the peer sends, in whatever thread has it, one message at a time. Until then it
    /// comes out of the carrier's [`FrameSource`](crate::FrameSource); what has come by then is handed over first.
    fn hear_with(&self, hear: Hear);
}
