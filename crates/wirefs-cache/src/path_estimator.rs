//! Estimates of the network path: round-trip time and bandwidth.
//!
//! The two filters are those of BBR (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue
//! 2016): the minimal RTT and the maximal delivery rate of the recent past.

use std::time::Duration;
use wirefs_op::Time;

/// The length of the filters' window.
const MEMORY: Duration = Duration::from_secs(10);

/// The state of the counters when a request was sent.
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    at: Time,
    delivered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Best<T> {
    value: T,
    at: Time,
}

/// Estimates one direction of one path.
#[derive(Clone, Debug, Default)]
pub struct PathEstimator {
    delivered: u64,
    rtt: Option<Best<Duration>>,
    /// The maximal delivery rate, in bytes per second.
    rate: Option<Best<u64>>,
}

impl PathEstimator {
    /// Starts a sample: a request is sent now.
    pub fn request_sent(&self, now: Time) -> RateSample {
        RateSample { at: now, delivered: self.delivered }
    }

    /// Counts received bytes.
    pub fn data_received(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// Ends an RTT sample: the first reply to a small request arrived.
    pub fn rtt_sample(&mut self, sample: RateSample, now: Time) {
        let value = now.since(sample.at);
        if self.rtt.is_none_or(|best| value <= best.value || now > best.at + MEMORY) {
            self.rtt = Some(Best { value, at: now });
        }
    }

    /// Ends a rate sample: the last reply to a request for data arrived.
    pub fn reply_received(&mut self, sample: RateSample, now: Time) {
        let span = now.since(sample.at).as_nanos().max(1);
        let bytes = u128::from(self.delivered - sample.delivered);
        let value = u64::try_from(bytes * 1_000_000_000 / span).unwrap_or(u64::MAX);
        if self.rate.is_none_or(|best| value >= best.value || now > best.at + MEMORY) {
            self.rate = Some(Best { value, at: now });
        }
    }

    /// Returns the minimal RTT of the recent past.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt.map(|best| best.value)
    }

    /// Returns the maximal delivery rate of the recent past, in bytes per second.
    pub fn rate(&self) -> Option<u64> {
        self.rate.map(|best| best.value)
    }

    /// Returns the bytes that the path delivers within `span` at the recent rate; 0 without a recent sample.
    pub fn bytes_within(&self, now: Time, span: Duration) -> u64 {
        let recent = self.rate.filter(|best| now <= best.at + MEMORY);
        recent.map_or(0, |best| over(best.value, span))
    }

    /// Returns the bandwidth-delay product in bytes; 0 while unknown.
    pub fn bdp_bytes(&self) -> u64 {
        let (Some(rtt), Some(rate)) = (self.rtt(), self.rate()) else {
            return 0;
        };
        over(rate, rtt)
    }
}

/// Returns the bytes at a rate, in bytes per second, over a span.
fn over(rate: u64, span: Duration) -> u64 {
    u64::try_from(u128::from(rate) * span.as_nanos() / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
