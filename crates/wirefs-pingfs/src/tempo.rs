//! How soon the next packets of a near host are taken while nobody waits for them.

use std::time::Duration;

use wirefs_echo::Time;

use crate::limits::{IDLE_RATE, KEEPER_PAUSE_MIN, QUIET_PAUSE_MIN};

/// What was taken from a host at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Packets, whosever they are.
    pub(crate) replies: u32,
    /// Those of them that were sent on.
    pub(crate) sent_on: u32,
    /// Whether the receive buffer is empty.
    pub(crate) is_drained: bool,
    /// Packets of blocks that belong there.
    pub(crate) packets: u64,
}

/// The tempo of one host.
#[derive(Debug, Default)]
pub(crate) struct Tempo {
    rests_until: Time,
    /// The least pause while it is quiet.
    pause: Duration,
}

impl Tempo {
    /// Notes what was taken until `now`, where packets are to go on at `rate` a second; none: as they come.
    pub(crate) fn took(&mut self, now: Time, rate: Option<u32>, taken: Taken) {
        // A host's rate may allow no more than a few packets at once. What is left is taken so soon that all go round in a second.
        let part = Duration::from_secs_f64(f64::from(taken.sent_on) / taken.packets.max(1) as f64);
        self.pause = if taken.is_drained { QUIET_PAUSE_MIN } else { part.min(QUIET_PAUSE_MIN) };
        if let Some(rate) = rate {
            // What is not sent on is nobody's store: taken slowly, it would fill the buffer, and the kernel drop what is.
            let own = Duration::from_secs(1) * taken.sent_on / rate.max(1);
            let all = Duration::from_secs(1) * taken.replies / IDLE_RATE;
            self.rests_until = now + own.max(all);
        }
    }

    /// Nothing may be taken now, whatever is there.
    pub(crate) fn hold(&mut self) {
        self.pause = Duration::ZERO;
    }

    /// For how long from `now` on nothing is taken while nobody waits; none: it may be.
    pub(crate) fn rests(&self, now: Time) -> Option<Duration> {
        (now < self.rests_until).then(|| self.rests_until - now)
    }
}

/// The least pause of a keeper of near hosts.
pub(crate) fn pause_min<'a>(is_quiet: bool, hosts: impl Iterator<Item = &'a Tempo>) -> Duration {
    let least =
        if is_quiet { hosts.map(|host| host.pause).min().unwrap_or(QUIET_PAUSE_MIN) } else { Duration::ZERO };
    least.max(KEEPER_PAUSE_MIN)
}

#[cfg(test)]
mod tests;
