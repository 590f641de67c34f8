//! Limits of the rate at which a mount sends and receives, over all of its connections together.
//!
//! Each direction has a token bucket (Tanenbaum and Wetherall, Computer Networks, 5.3.4): what was moved is subtracted
//! from a balance that grows at the rate, and nothing moves while the balance is negative. A frame is never split, so
//! that one frame may overdraw the balance; the average is exact.

mod bucket;
mod sink;
mod source;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::carrier::Carrier;
use bucket::Bucket;
use sink::RateLimitedSink;
use source::RateLimitedSource;

/// How soon a waiting direction notices that its carrier is closed.
const CLOSE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The limits of a mount. They can be changed at any time.
#[derive(Debug, Default)]
pub struct RateLimits {
    /// The limit of sending.
    pub up: RateLimit,
    /// The limit of receiving.
    pub down: RateLimit,
    is_paused: AtomicBool,
}

impl RateLimits {
    /// Returns limits of so many bytes per second; `None`: no limit.
    pub fn new(up: Option<u64>, down: Option<u64>) -> RateLimits {
        RateLimits { up: RateLimit::new(up), down: RateLimit::new(down), is_paused: AtomicBool::new(false) }
    }

    /// Forbids or allows new connections. The owner closes the present ones.
    pub fn set_paused(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::SeqCst);
    }

    /// Returns whether new connections are forbidden.
    pub fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::SeqCst)
    }
}

/// Lets a carrier stay below the limits. Direct calls within this process move no bytes.
pub(crate) fn rate_limited(carrier: Carrier, limits: &Arc<RateLimits>) -> Carrier {
    let Carrier { source, sink, closer, peer } = carrier;
    if sink.in_process().is_some() {
        return Carrier { source, sink, closer, peer };
    }
    Carrier {
        source: Box::new(RateLimitedSource::new(source, Arc::clone(limits), closer.clone())),
        sink: Box::new(RateLimitedSink::new(sink, Arc::clone(limits), closer.clone())),
        closer,
        peer,
    }
}

/// The limit of one direction.
#[derive(Debug, Default)]
pub struct RateLimit {
    bucket: Mutex<Bucket>,
    /// Signaled when the rate is changed.
    changed: Condvar,
}

impl RateLimit {
    /// Returns a limit of so many bytes per second; `None`: no limit.
    pub fn new(rate: Option<u64>) -> RateLimit {
        RateLimit { bucket: Mutex::new(Bucket::new(rate)), changed: Condvar::new() }
    }

    /// Changes the rate, in bytes per second; `None`: no limit.
    pub fn set(&self, rate: Option<u64>) {
        self.lock().set(rate);
        self.changed.notify_all();
    }

    /// Returns the rate, in bytes per second; `None`: no limit.
    pub fn rate(&self) -> Option<u64> {
        self.lock().rate()
    }

    /// Returns whether something may be moved now.
    fn is_open(&self) -> bool {
        self.lock().wait(Instant::now()).is_none()
    }

    /// Subtracts bytes that were moved.
    fn subtract(&self, bytes: usize) {
        self.lock().subtract(Instant::now(), bytes);
    }

    /// Waits until something may be moved, at most `timeout` and while `is_open`. Returns whether it may.
    fn wait(&self, timeout: Duration, is_open: impl Fn() -> bool) -> bool {
        let mut bucket = self.lock();
        if bucket.rate().is_none() {
            return true;
        }
        let deadline = Instant::now() + timeout;
        loop {
            let now = Instant::now();
            let Some(wait) = bucket.wait(now) else { return true };
            let rest = deadline.saturating_duration_since(now);
            if rest.is_zero() || !is_open() {
                return false;
            }
            let wait = wait.min(rest).min(CLOSE_CHECK_INTERVAL);
            bucket = self.changed.wait_timeout(bucket, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Bucket> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
