//! The state of one connection that all threads share.

use super::limited::Limited;
use super::options::PeerRights;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wirefs_carrier::{Closer, FrameSource, Gauge, PeerInfo, SendQueue};
use wirefs_server::ConnectionKey;

/// The longest time that counts as one sample, so that a single stall does not look like a slow disk for long.
const SAMPLE_MAX: Duration = Duration::from_millis(2);

/// The shared state of one connection.
pub(super) struct Connection {
    pub(super) key: ConnectionKey,
    pub(super) peer: PeerInfo,
    pub(super) rights: PeerRights,
    pub(super) send_queue: SendQueue,
    pub(super) closer: Closer,
    /// The connection is closed: replies are dropped.
    gone: AtomicBool,
    pub(super) received_bytes: AtomicU64,
    /// The average times of quick requests: those that need the write slot, and the others.
    pub(super) slot_pace: Pace,
    pub(super) free_pace: Pace,
    pub(super) slot: Slot,
    pub(super) limited: Limited,
}

impl Connection {
    pub(super) fn new(
        key: ConnectionKey,
        (peer, rights): (PeerInfo, PeerRights),
        send_queue: SendQueue,
        closer: Closer,
        gauge: Option<Gauge>,
    ) -> Connection {
        Connection {
            key,
            peer,
            rights,
            send_queue,
            closer,
            gone: AtomicBool::new(false),
            received_bytes: AtomicU64::new(0),
            slot_pace: Pace::default(),
            free_pace: Pace::default(),
            slot: Slot::default(),
            limited: Limited::new(gauge),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Drops all further replies.
    pub(super) fn leave(&self) {
        self.gone.store(true, Ordering::Release);
    }
}

/// A moving average of durations.
#[derive(Debug, Default)]
pub(super) struct Pace {
    nanos: AtomicU64,
}

impl Pace {
    /// Adds a sample. A race between two threads may lose one.
    pub(super) fn sample(&self, took: Duration) {
        let took = u64::try_from(took.min(SAMPLE_MAX).as_nanos()).unwrap_or(u64::MAX);
        let average = self.nanos.load(Ordering::Relaxed);
        self.nanos.store(average - average / 8 + took / 8, Ordering::Relaxed);
    }

    pub(super) fn average(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

/// Holds a reader's source while the reader executes a request itself. If that takes long, another thread takes the
/// source and reads on.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<SlotState>,
    /// Replaced readers that still execute a request.
    replaced: AtomicU64,
}

#[derive(Default)]
struct SlotState {
    source: Option<Box<dyn FrameSource>>,
    /// The time at which the source was stored, in nanoseconds of the server's clock.
    since: u64,
}

impl Slot {
    fn lock(&self) -> std::sync::MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the source.
    pub(super) fn leave(&self, source: Box<dyn FrameSource>, now: u64) {
        *self.lock() = SlotState { source: Some(source), since: now };
    }

    /// Returns the source; `None` if another thread reads now, and this reader ends.
    pub(super) fn take_back(&self) -> Option<Box<dyn FrameSource>> {
        let source = self.lock().source.take();
        if source.is_none() {
            self.replaced.fetch_sub(1, Ordering::AcqRel);
        }
        source
    }

    /// Takes the source of a reader that has been busy since before `before`.
    pub(super) fn take_over(&self, before: u64) -> Option<Box<dyn FrameSource>> {
        let mut state = self.lock();
        if state.since >= before {
            return None;
        }
        let source = state.source.take()?;
        self.replaced.fetch_add(1, Ordering::AcqRel);
        Some(source)
    }

    /// Returns whether a reader executes a request.
    pub(super) fn is_occupied(&self) -> bool {
        self.lock().source.is_some()
    }

    /// Returns whether a replaced reader still executes a request.
    pub(super) fn has_replaced(&self) -> bool {
        self.replaced.load(Ordering::Acquire) > 0
    }
}
