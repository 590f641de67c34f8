//! Loss, rates and RTT of a host over about one cycle.
//!
//! # Source
//! The monitor interval of PCC (Dong et al., 2015); the figures are ours.

use std::time::Duration;

use wirefs_op::Time;

use crate::timeline::SendGroup;

/// The smallest number of packets in an interval.
const PACKETS_MIN: u64 = 16;

/// Figures of the packets sent in some time, and of the replies that arrived in a time of about the same
/// length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MonitorInterval {
    opened: Time,
    span: Duration,
    begun: Option<Time>,
    sent: u64,
    answered: u64,
    rtt_sum: Duration,
    replies: u32,
    /// Arrival times of the first and the last reply.
    arrived: Option<(Time, Time)>,
}

impl MonitorInterval {
    /// Begins an interval.
    pub(crate) fn open(now: Time) -> MonitorInterval {
        let none = Duration::ZERO;
        MonitorInterval {
            opened: now,
            span: none,
            begun: None,
            sent: 0,
            answered: 0,
            rtt_sum: none,
            replies: 0,
            arrived: None,
        }
    }

    /// Adds a closed group of packets.
    pub(crate) fn add(&mut self, group: &SendGroup) {
        let begun = *self.begun.get_or_insert(group.begun);
        self.span = group.ended - begun;
        self.sent += group.pieces.sent + group.probes.sent;
        self.answered += group.pieces.answered + group.probes.answered;
    }

    /// Adds a reply with its arrival time and RTT.
    pub(crate) fn add_reply(&mut self, arrived: Time, rtt: Duration) {
        let (first, last) = self.arrived.unwrap_or((arrived, arrived));
        self.arrived = Some((first, last.max(arrived)));
        if self.replies < u32::MAX {
            self.rtt_sum += rtt;
            self.replies += 1;
        }
    }

    /// Returns whether the interval has enough packets to be evaluated.
    pub(crate) fn is_whole(&self, cycle: Duration) -> bool {
        self.sent >= PACKETS_MIN && self.replies > 0 && self.span >= cycle
    }

    /// Returns when the first packet was sent.
    pub(crate) fn begun(&self) -> Time {
        self.begun.unwrap_or(self.opened)
    }

    /// Returns the average RTT.
    pub(crate) fn rtt(&self) -> Duration {
        self.rtt_sum.checked_div(self.replies).unwrap_or_default()
    }

    /// Returns the number of packets that did not come back.
    pub(crate) fn missing(&self) -> u64 {
        self.sent.saturating_sub(self.answered)
    }

    /// Returns the part of the packets that did not come back.
    pub(crate) fn loss(&self) -> f64 {
        self.missing() as f64 / self.sent.max(1) as f64
    }

    /// Returns the send rate in packets per second.
    pub(crate) fn sent_rate(&self) -> f64 {
        self.sent as f64 / self.span.as_secs_f64().max(1e-6)
    }

    /// Returns the rate of the replies in packets per second. Behind a queue it is below the send rate, even
    /// without loss.
    pub(crate) fn answered_rate(&self) -> f64 {
        let span = self.arrived.map_or(Duration::ZERO, |(first, last)| last - first);
        f64::from(self.replies.saturating_sub(1)) / span.as_secs_f64().max(1e-6)
    }
}

#[cfg(test)]
impl MonitorInterval {
    /// Creates an interval that ends at `now`, for tests.
    pub(crate) fn of(
        now: Time,
        span: Duration,
        sent: u64,
        answered: u64,
        replies: u32,
        rtt: Duration,
    ) -> MonitorInterval {
        let opened = Time(now.0.saturating_sub(span.as_nanos() as u64));
        let replied = replies.max(1);
        let arrived = Some((opened + span / replied, now));
        MonitorInterval {
            opened,
            span,
            begun: Some(opened),
            sent,
            answered,
            rtt_sum: rtt * replies,
            replies,
            arrived,
        }
    }
}
