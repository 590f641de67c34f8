//! What a host did with the packets of about one lap.

use std::time::Duration;

use wirefs_op::Time;

use crate::timeline::Mark;

/// Packets that an epoch has at least.
const PACKETS_MIN: u64 = 16;

/// Figures of the packets sent in some time, and of the replies that came in another of about the same length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    opened: Time,
    span: Duration,
    begun: Option<Time>,
    sent: u64,
    answered: u64,
    way_sum: Duration,
    replies: u32,
    /// When the first and the last of its replies arrived.
    arrived: Option<(Time, Time)>,
}

impl Epoch {
    /// Begins one.
    pub(crate) fn open(now: Time) -> Epoch {
        let none = Duration::ZERO;
        Epoch {
            opened: now,
            span: none,
            begun: None,
            sent: 0,
            answered: 0,
            way_sum: none,
            replies: 0,
            arrived: None,
        }
    }

    /// Adds the packets of a closed mark.
    pub(crate) fn add(&mut self, mark: &Mark) {
        let begun = *self.begun.get_or_insert(mark.begun);
        self.span = mark.ended - begun;
        self.sent += mark.pieces.sent + mark.ballast.sent;
        self.answered += mark.pieces.answered + mark.ballast.answered;
    }

    /// Adds a reply that arrived then and was on the way for so long.
    pub(crate) fn add_reply(&mut self, arrived: Time, way: Duration) {
        let (first, last) = self.arrived.unwrap_or((arrived, arrived));
        self.arrived = Some((first, last.max(arrived)));
        if self.replies < u32::MAX {
            self.way_sum += way;
            self.replies += 1;
        }
    }

    /// Whether it is long enough to say something.
    pub(crate) fn is_whole(&self, lap: Duration) -> bool {
        self.sent >= PACKETS_MIN && self.replies > 0 && self.span >= lap
    }

    /// When the first of its packets was sent.
    pub(crate) fn begun(&self) -> Time {
        self.begun.unwrap_or(self.opened)
    }

    /// The average time on the way.
    pub(crate) fn way(&self) -> Duration {
        self.way_sum.checked_div(self.replies).unwrap_or_default()
    }

    /// Packets that did not come back.
    pub(crate) fn missing(&self) -> u64 {
        self.sent.saturating_sub(self.answered)
    }

    /// The part of the packets that did not come back.
    pub(crate) fn loss(&self) -> f64 {
        self.missing() as f64 / self.sent.max(1) as f64
    }

    /// Packets sent a second.
    pub(crate) fn sent_rate(&self) -> f64 {
        self.sent as f64 / self.span.as_secs_f64().max(1e-6)
    }

    /// Replies a second, from the first to the last. Behind a queue they come more slowly than was sent, though none is lost.
    pub(crate) fn answered_rate(&self) -> f64 {
        let span = self.arrived.map_or(Duration::ZERO, |(first, last)| last - first);
        f64::from(self.replies.saturating_sub(1)) / span.as_secs_f64().max(1e-6)
    }
}

#[cfg(test)]
impl Epoch {
    /// One that ends `now` as a test wants it.
    pub(crate) fn of(
        now: Time,
        span: Duration,
        sent: u64,
        answered: u64,
        replies: u32,
        way: Duration,
    ) -> Epoch {
        let opened = Time(now.0.saturating_sub(span.as_nanos() as u64));
        let replied = replies.max(1);
        let arrived = Some((opened + span / replied, now));
        Epoch { opened, span, begun: Some(opened), sent, answered, way_sum: way * replies, replies, arrived }
    }
}
