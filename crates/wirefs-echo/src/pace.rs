//! Evenly spaced sending: a bucket of tokens that fills at a rate.

use std::time::Duration;

use wirefs_op::Time;

/// What may be sent at once after a pause, as the time in which it is earned.
const BURST_SPAN: Duration = Duration::from_millis(5);
/// The least that may be sent at once, in packets.
const BURST_MIN: f64 = 2.0;

/// Tokens, one for each packet.
#[derive(Debug)]
pub(crate) struct Pace {
    tokens: f64,
    filled: Time,
    /// When it was last full: what could have been sent was not.
    full: Time,
}

impl Pace {
    /// Makes a bucket with one token.
    pub(crate) fn new() -> Pace {
        Pace { tokens: 1.0, filled: Time::default(), full: Time::default() }
    }

    /// Fills it up to `now`, at this many tokens a second.
    pub(crate) fn fill(&mut self, now: Time, rate: f64) {
        let earned = (now - self.filled).as_secs_f64() * rate;
        self.filled = now.max(self.filled);
        if self.tokens + earned >= burst(rate) {
            self.full = self.filled;
        }
        self.tokens = (self.tokens + earned).min(burst(rate));
    }

    /// Packets that may be sent now.
    pub(crate) fn available(&self) -> usize {
        self.tokens.max(0.0) as usize
    }

    /// For how long all that was allowed has been sent.
    pub(crate) fn pressed_for(&self) -> Duration {
        self.filled - self.full
    }

    /// Pays for a packet. The account may be overdrawn, so that a batch need not be cut.
    pub(crate) fn pay(&mut self) {
        self.tokens -= 1.0;
    }

    /// When this many packets may be sent, up to what may be sent at once.
    pub(crate) fn ready(&self, packets: f64, rate: f64) -> Time {
        let missing = packets.min(burst(rate)) - self.tokens;
        if missing <= 0.0 {
            return self.filled;
        }
        // A rate of zero never gets there.
        let span = Duration::try_from_secs_f64(missing / rate).unwrap_or(Duration::MAX);
        self.filled + span
    }
}

fn burst(rate: f64) -> f64 {
    (rate * BURST_SPAN.as_secs_f64()).max(BURST_MIN)
}

#[cfg(test)]
mod tests;
