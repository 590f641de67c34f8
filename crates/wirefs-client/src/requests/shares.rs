//! The rate at which each connection delivers contents. Each is asked for as much as it can deliver in the same time.

use std::time::Duration;
use wirefs_op::Time;

/// The minimum time of one measurement.
const SPAN: Duration = Duration::from_millis(100);
/// The time for which a measurement is used. A connection that was slow once is tried again afterwards.
const MEMORY: Duration = Duration::from_secs(10);
/// The bytes after which a first, provisional rate is computed. Further bytes within the span refine it.
const FIRST_BYTES: u64 = 128 * 1024;

/// The rate of a connection, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    /// There is no recent measurement.
    Unknown,
    /// Measured over less than a span, so it may be a burst.
    Presumed(u64),
    /// Measured over whole spans.
    Measured(u64),
}

impl Rate {
    fn known(self) -> Option<u64> {
        match self {
            Rate::Unknown => None,
            Rate::Presumed(rate) | Rate::Measured(rate) => Some(rate),
        }
    }

    /// Whether a connection with these outstanding bytes may get more. A sequential reader waits for the slowest connection, so an
    /// unmeasured one gets little: one request, and then as much as arrives within a span.
    fn may_be_asked(self, to_come: u64, more: u64) -> bool {
        let owed = u128::from(to_come) + u128::from(more);
        match self {
            Rate::Unknown => to_come == 0,
            Rate::Presumed(rate) => {
                to_come == 0 || owed * 1_000_000_000 <= u128::from(rate) * SPAN.as_nanos()
            }
            Rate::Measured(_) => true,
        }
    }
}

/// The rate of one connection, measured while it had outstanding bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// The start of the measurement; `None` without outstanding bytes.
    since: Option<Time>,
    bytes: u64,
    /// The rate, and the time of its measurement.
    rate: Option<(Rate, Time)>,
}

impl Share {
    /// Notes a request over this connection, which had `to_come` outstanding bytes before.
    pub(crate) fn asks(&mut self, now: Time, to_come: u64) {
        if to_come == 0 || self.since.is_none() {
            (self.since, self.bytes) = (Some(now), 0);
        }
    }

    /// Notes that no bytes are outstanding.
    pub(crate) fn rests(&mut self) {
        self.since = None;
    }

    /// Notes received bytes.
    pub(crate) fn brings(&mut self, now: Time, bytes: usize) {
        let Some(since) = self.since else { return };
        self.bytes += bytes as u64;
        let span = now.since(since);
        let fresh = u128::from(self.bytes) * 1_000_000_000 / span.as_nanos().max(1);
        let fresh = u64::try_from(fresh).unwrap_or(u64::MAX);
        match self.rate(now) {
            // One span alone may have met another one's burst.
            Rate::Measured(before) if span >= SPAN => self.measured(now, before / 2 + fresh / 2),
            Rate::Unknown | Rate::Presumed(_) if span >= SPAN => self.measured(now, fresh),
            Rate::Unknown | Rate::Presumed(_) if self.bytes >= FIRST_BYTES => {
                self.rate = Some((Rate::Presumed(fresh), now));
            }
            Rate::Unknown | Rate::Presumed(_) | Rate::Measured(_) => {}
        }
    }

    fn measured(&mut self, now: Time, rate: u64) {
        self.rate = Some((Rate::Measured(rate), now));
        (self.since, self.bytes) = (Some(now), 0);
    }

    pub(crate) fn rate(&self, now: Time) -> Rate {
        self.rate.filter(|(_, at)| now <= *at + MEMORY).map_or(Rate::Unknown, |(rate, _)| rate)
    }
}

/// Returns the connection that would first have delivered its outstanding bytes and `more`; of equals, the first. Each
/// item has a connection, its outstanding bytes and its rate. An unmeasured connection counts as fast as the fastest
/// measured one. The first connection may always be asked, the others as far as their rates allow.
pub(crate) fn soonest<K>(connections: impl Iterator<Item = (K, u64, Rate)> + Clone, more: u64) -> Option<K> {
    let fastest = connections.clone().filter_map(|(.., rate)| rate.known()).max().unwrap_or(1);
    let span = |to_come: u64, rate: Rate| {
        let rate = rate.known().unwrap_or(fastest).max(1);
        (u128::from(to_come) + u128::from(more)) * 1_000_000_000 / u128::from(rate)
    };
    let asked = connections
        .enumerate()
        .filter(|(index, (_, to_come, rate))| *index == 0 || rate.may_be_asked(*to_come, more))
        .map(|(_, connection)| connection);
    asked.min_by_key(|(_, to_come, rate)| span(*to_come, *rate)).map(|(key, ..)| key)
}

#[cfg(test)]
mod tests;
