//! The estimate of the round-trip time of a path.

use std::time::Duration;

use wirefs_op::Time;

use crate::limits::{ACK_DELAY_MAX, PROBE_TIMEOUT_MAX, PROBE_TIMEOUT_MIN};

/// The round-trip time before the first sample.
const INITIAL_RTT: Duration = Duration::from_millis(10);
/// The lifetime of the minimum: the route may have changed.
const MIN_RTT_LIFETIME: Duration = Duration::from_secs(10);

/// Smoothed round-trip time and variation.
///
/// # Source
/// RFC 6298, section 2: weights 1/8 and 1/4.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Duration,
    min_rtt: Duration,
    min_rtt_at: Time,
}

impl Rtt {
    pub(crate) fn new() -> Rtt {
        Rtt {
            smoothed: None,
            variation: INITIAL_RTT / 2,
            latest: INITIAL_RTT,
            min_rtt: INITIAL_RTT,
            min_rtt_at: Time::default(),
        }
    }

    /// Adds a sample. `ack_delay` is the delay that the peer reported.
    pub(crate) fn add_sample(&mut self, now: Time, measured: Duration, ack_delay: Duration) {
        if self.smoothed.is_none()
            || measured <= self.min_rtt
            || now.since(self.min_rtt_at) > MIN_RTT_LIFETIME
        {
            self.min_rtt = measured;
            self.min_rtt_at = now;
        }
        // The reported delay cannot make the sample smaller than the minimum.
        let own = measured.saturating_sub(ack_delay).max(self.min_rtt);
        self.latest = own;
        match self.smoothed {
            None => {
                self.smoothed = Some(own);
                self.variation = own / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(own)) / 4;
                self.smoothed = Some((smoothed * 7 + own) / 8);
            }
        }
    }

    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed.unwrap_or(INITIAL_RTT)
    }

    /// Returns the smoothed round-trip time; `None` before the first sample.
    pub(crate) fn measured(&self) -> Option<Duration> {
        self.smoothed
    }

    pub(crate) fn min_rtt(&self) -> Duration {
        self.min_rtt
    }

    /// Returns the probe timeout (RFC 9002, section 6.2.1).
    pub(crate) fn probe_timeout(&self) -> Duration {
        (self.smoothed() + self.variation * 4 + ACK_DELAY_MAX).max(PROBE_TIMEOUT_MIN)
    }

    /// Returns the probe timeout after this many timeouts in a row: exponential backoff.
    pub(crate) fn probe_timeout_after(&self, pto_count: u32) -> Duration {
        let probe_timeout = self.probe_timeout();
        (probe_timeout * (1 << pto_count.min(8))).min(PROBE_TIMEOUT_MAX.max(probe_timeout))
    }

    /// Returns the age at which a packet counts as lost once a later one is acknowledged.
    ///
    /// # Source
    /// RFC 9002, section 6.1.2: 9/8 of the round-trip time.
    pub(crate) fn loss_delay(&self) -> Duration {
        (self.smoothed().max(self.latest) * 9 / 8).max(Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests;
