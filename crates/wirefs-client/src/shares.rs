//! How fast a connection brings contents, so that each is asked for as much as it brings in the same time.

use std::time::Duration;
use wirefs_op::Time;

/// Over so long it is measured, at least.
const SPAN: Duration = Duration::from_millis(100);
/// So long a measure counts: a connection that was slow once is tried again.
const MEMORY: Duration = Duration::from_secs(10);

/// One connection's rate, while something was to come over it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    since: Time,
    bytes: u64,
    /// Bytes per second, and when that was measured.
    rate: Option<(u64, Time)>,
}

impl Share {
    /// Something is asked over it, where so much is to come yet.
    pub(crate) fn asks(&mut self, now: Time, to_come: u64) {
        if to_come == 0 {
            (self.since, self.bytes) = (now, 0);
        }
    }

    /// Bytes have come over it.
    pub(crate) fn brings(&mut self, now: Time, bytes: usize) {
        self.bytes += bytes as u64;
        let span = now.since(self.since);
        if span < SPAN {
            return;
        }
        let fresh = u128::from(self.bytes) * 1_000_000_000 / span.as_nanos().max(1);
        let fresh = u64::try_from(fresh).unwrap_or(u64::MAX);
        // One span alone may have met another one's burst.
        let rate = self.rate(now).map_or(fresh, |before| before / 2 + fresh / 2);
        self.rate = Some((rate, now));
        (self.since, self.bytes) = (now, 0);
    }

    /// Bytes per second; `None` where nothing was measured of late.
    pub(crate) fn rate(&self, now: Time) -> Option<u64> {
        self.rate.filter(|(_, at)| now <= *at + MEMORY).map(|(rate, _)| rate)
    }
}

/// Which of these connections has brought what is still to come over it, and so much more, first: of those that take as long the
/// first. Each comes with what is to come and its rate; one that was not measured counts as the fastest that was.
pub(crate) fn soonest<K>(
    connections: impl Iterator<Item = (K, u64, Option<u64>)> + Clone,
    more: u64,
) -> Option<K> {
    let fastest = connections.clone().filter_map(|(.., rate)| rate).max().unwrap_or(1);
    let span = |to_come: u64, rate: Option<u64>| {
        let rate = rate.unwrap_or(fastest).max(1);
        (u128::from(to_come) + u128::from(more)) * 1_000_000_000 / u128::from(rate)
    };
    connections.min_by_key(|(_, to_come, rate)| span(*to_come, *rate)).map(|(key, ..)| key)
}

#[cfg(test)]
mod tests;
