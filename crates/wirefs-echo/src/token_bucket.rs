//! A token bucket that spaces transmissions evenly.

use std::time::Duration;

use wirefs_op::Time;

/// The burst size, as the time in which its tokens accumulate.
const BURST_SPAN: Duration = Duration::from_millis(5);
/// The smallest burst size in packets.
const BURST_MIN: f64 = 2.0;

/// Tokens, one per packet.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    tokens: f64,
    filled: Time,
    /// When the bucket was last full, so that the rate was not the limit.
    full: Time,
}

impl TokenBucket {
    /// Creates a bucket with one token.
    pub(crate) fn new() -> TokenBucket {
        TokenBucket { tokens: 1.0, filled: Time::default(), full: Time::default() }
    }

    /// Adds the tokens up to `now`, at `rate` tokens per second.
    pub(crate) fn refill(&mut self, now: Time, rate: f64) {
        let earned = (now - self.filled).as_secs_f64() * rate;
        self.filled = now.max(self.filled);
        if self.tokens + earned >= burst(rate) {
            self.full = self.filled;
        }
        self.tokens = (self.tokens + earned).min(burst(rate));
    }

    /// Returns how many packets may be sent now.
    pub(crate) fn available(&self) -> usize {
        self.tokens.max(0.0) as usize
    }

    /// Returns for how long the rate has been the limit.
    pub(crate) fn limited_for(&self) -> Duration {
        self.filled - self.full
    }

    /// Removes a token. The count may become negative, so that a batch need not be split.
    pub(crate) fn spend(&mut self) {
        self.tokens -= 1.0;
    }

    /// Returns when this many packets may be sent, at most a burst.
    pub(crate) fn ready_at(&self, packets: f64, rate: f64) -> Time {
        let missing = packets.min(burst(rate)) - self.tokens;
        if missing <= 0.0 {
            return self.filled;
        }
        // With a rate of zero the time is never reached.
        let span = Duration::try_from_secs_f64(missing / rate).unwrap_or(Duration::MAX);
        self.filled + span
    }
}

fn burst(rate: f64) -> f64 {
    (rate * BURST_SPAN.as_secs_f64()).max(BURST_MIN)
}

#[cfg(test)]
mod tests;
