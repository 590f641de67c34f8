//! Pacing of near hosts while no caller waits: when to take the next packets.

use std::time::Duration;

use wirefs_echo::Time;

use crate::limits::{IDLE_RATE, KEEPER_PAUSE_MIN, QUIET_PAUSE_MIN};

/// The result of one reception.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedBatch {
    /// Received packets, foreign ones included.
    pub(crate) replies: u32,
    /// Packets that were sent again.
    pub(crate) resent: u32,
    /// Whether the receive buffer is empty.
    pub(crate) is_drained: bool,
    /// Packets of blocks at the host.
    pub(crate) packets: u64,
}

/// The pacing of one host.
#[derive(Debug, Default)]
pub(crate) struct ReceivePacing {
    wait_until: Time,
    /// The shortest pause while the store is quiet.
    pause: Duration,
}

impl ReceivePacing {
    /// Records a reception. `rate`: packets per second to send again; `None` without a limit.
    pub(crate) fn record(&mut self, now: Time, rate: Option<u32>, taken: ReceivedBatch) {
        // A host's rate may allow a few packets at a time. The next ones are taken so soon that all circulate
        // within a second.
        let part = Duration::from_secs_f64(f64::from(taken.resent) / taken.packets.max(1) as f64);
        self.pause = if taken.is_drained { QUIET_PAUSE_MIN } else { part.min(QUIET_PAUSE_MIN) };
        if let Some(rate) = rate {
            // Packets that are not sent again belong to no block. Taken slowly they would fill the buffer,
            // and the kernel would drop packets of blocks.
            let own = Duration::from_secs(1) * taken.resent / rate.max(1);
            let all = Duration::from_secs(1) * taken.replies / IDLE_RATE;
            self.wait_until = now + own.max(all);
        }
    }

    /// Records that the rate allows no reception now.
    pub(crate) fn hold(&mut self) {
        self.pause = Duration::ZERO;
    }

    /// Returns for how long nothing is taken while no caller waits; `None` if packets may be taken.
    pub(crate) fn wait(&self, now: Time) -> Option<Duration> {
        (now < self.wait_until).then(|| self.wait_until - now)
    }
}

/// Returns the shortest pause of a keeper with these near hosts.
pub(crate) fn pause_min<'a>(is_quiet: bool, hosts: impl Iterator<Item = &'a ReceivePacing>) -> Duration {
    let wait_min =
        if is_quiet { hosts.map(|host| host.pause).min().unwrap_or(QUIET_PAUSE_MIN) } else { Duration::ZERO };
    wait_min.max(KEEPER_PAUSE_MIN)
}

#[cfg(test)]
mod tests;
