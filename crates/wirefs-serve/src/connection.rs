//! One connection, as all threads see it.

use super::limited::Limited;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wirefs_carrier::{Closer, FrameSource, Gauge, PeerInfo, SendQueue};
use wirefs_server::ConnectionKey;

/// A sample counts for so much at most, so that one stall does not look like a slow disk for long.
const SAMPLE_MAX: Duration = Duration::from_millis(2);

/// What is shared about one connection.
pub(super) struct Connection {
    pub(super) key: ConnectionKey,
    pub(super) peer: PeerInfo,
    pub(super) outbox: SendQueue,
    pub(super) closer: Closer,
    /// Nobody is there any more: replies are dropped.
    gone: AtomicBool,
    pub(super) received_bytes: AtomicU64,
    /// How long quick requests take, on average: those that take turns and the others.
    pub(super) turn_pace: Pace,
    pub(super) free_pace: Pace,
    pub(super) slot: Slot,
    pub(super) limited: Limited,
}

impl Connection {
    pub(super) fn new(
        key: ConnectionKey,
        peer: PeerInfo,
        outbox: SendQueue,
        closer: Closer,
        gauge: Option<Gauge>,
    ) -> Connection {
        Connection {
            key,
            peer,
            outbox,
            closer,
            gone: AtomicBool::new(false),
            received_bytes: AtomicU64::new(0),
            turn_pace: Pace::default(),
            free_pace: Pace::default(),
            slot: Slot::default(),
            limited: Limited::new(gauge),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Drops all replies from now on.
    pub(super) fn leave(&self) {
        self.gone.store(true, Ordering::Release);
    }
}

/// A running average of durations.
#[derive(Debug, Default)]
pub(super) struct Pace {
    nanos: AtomicU64,
}

impl Pace {
    /// Counts one; a lost update between two threads costs a sample, no more.
    pub(super) fn sample(&self, took: Duration) {
        let took = u64::try_from(took.min(SAMPLE_MAX).as_nanos()).unwrap_or(u64::MAX);
        let average = self.nanos.load(Ordering::Relaxed);
        self.nanos.store(average - average / 8 + took / 8, Ordering::Relaxed);
    }

    pub(super) fn average(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

/// Where a reader leaves its source while it carries out a request itself, so that another thread can go on reading
/// when that takes long.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<SlotState>,
    /// Readers that were relieved and are still busy.
    relieved: AtomicU64,
}

#[derive(Default)]
struct SlotState {
    source: Option<Box<dyn FrameSource>>,
    /// When it was left here, in nanoseconds of the server's clock.
    since: u64,
}

impl Slot {
    fn lock(&self) -> std::sync::MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the source.
    pub(super) fn leave(&self, source: Box<dyn FrameSource>, now: u64) {
        *self.lock() = SlotState { source: Some(source), since: now };
    }

    /// Takes it back; `None`: somebody else reads now, and this reader is done.
    pub(super) fn take_back(&self) -> Option<Box<dyn FrameSource>> {
        let source = self.lock().source.take();
        if source.is_none() {
            self.relieved.fetch_sub(1, Ordering::AcqRel);
        }
        source
    }

    /// Takes it from a reader that has been busy since before `before`.
    pub(super) fn relieve(&self, before: u64) -> Option<Box<dyn FrameSource>> {
        let mut state = self.lock();
        if state.since >= before {
            return None;
        }
        let source = state.source.take()?;
        self.relieved.fetch_add(1, Ordering::AcqRel);
        Some(source)
    }

    /// Whether a reader is busy.
    pub(super) fn is_occupied(&self) -> bool {
        self.lock().source.is_some()
    }

    /// Whether a relieved reader is still busy.
    pub(super) fn has_relieved(&self) -> bool {
        self.relieved.load(Ordering::Acquire) > 0
    }
}
