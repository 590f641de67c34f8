//! What the wire is measured to be: its round trip time and its bandwidth.
//!
//! The two filters are those of BBR (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 2016): the
//! least round trip and the greatest delivery rate of the recent past.

use std::time::Duration;
use wirefs_op::Time;

/// How long a greatest rate or a least round trip counts.
const MEMORY: Duration = Duration::from_secs(10);

/// Where the counters stood when a request was sent.
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

/// Measures one direction of one wire.
#[derive(Clone, Debug, Default)]
pub struct PathEstimator {
    delivered: u64,
    rtt: Option<Best<Duration>>,
    /// Bytes per second.
    rate: Option<Best<u64>>,
}

impl PathEstimator {
    /// Notes that a request is sent now.
    pub fn request_sent(&self, now: Time) -> RateSample {
        RateSample { at: now, delivered: self.delivered }
    }

    /// Notes bytes that arrived.
    pub fn data_received(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// Notes that the first reply to a small request is here.
    pub fn rtt_sample(&mut self, sample: RateSample, now: Time) {
        let value = now.since(sample.at);
        if self.rtt.is_none_or(|best| value <= best.value || now > best.at + MEMORY) {
            self.rtt = Some(Best { value, at: now });
        }
    }

    /// Notes that the last reply to a request for data is here: what arrived since it was sent gives a rate.
    pub fn reply_received(&mut self, sample: RateSample, now: Time) {
        let span = now.since(sample.at).as_nanos().max(1);
        let bytes = u128::from(self.delivered - sample.delivered);
        let value = u64::try_from(bytes * 1_000_000_000 / span).unwrap_or(u64::MAX);
        if self.rate.is_none_or(|best| value >= best.value || now > best.at + MEMORY) {
            self.rate = Some(Best { value, at: now });
        }
    }

    /// The least round trip time of late.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt.map(|best| best.value)
    }

    /// The greatest delivery rate of late, in bytes per second.
    pub fn rate(&self) -> Option<u64> {
        self.rate.map(|best| best.value)
    }

    /// How many bytes `span` has brought of late, at least; 0 where nothing was measured of late.
    pub fn bytes_within(&self, now: Time, span: Duration) -> u64 {
        let recent = self.rate.filter(|best| now <= best.at + MEMORY);
        recent.map_or(0, |best| over(best.value, span))
    }

    /// What the wire holds, in bytes: rate × round trip time; 0 while unknown.
    pub fn bdp_bytes(&self) -> u64 {
        let (Some(rtt), Some(rate)) = (self.rtt(), self.rate()) else {
            return 0;
        };
        over(rate, rtt)
    }
}

/// Bytes that a rate, in bytes per second, makes over a span.
fn over(rate: u64, span: Duration) -> u64 {
    u64::try_from(u128::from(rate) * span.as_nanos() / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
