//! The state of the first connection: up or down, and signs of life.

use std::time::Duration;
use wirefs_op::Time;

/// Silence, while a reply is due, after which we ask for a sign of life.
pub(crate) const SILENCE_BEFORE_PING: Duration = Duration::from_secs(2);

/// Silence, while a reply is due, after which the connection is given up and another is dialled.
pub(crate) const SILENCE_BEFORE_HANG_UP: Duration = Duration::from_secs(8);

/// A longer pause between two ticks, which come twice a second, means that the machine slept, or was a paused virtual machine. No
/// connection was possible meanwhile, so the pause is no waiting time.
pub(crate) const SLEEP: Duration = Duration::from_secs(5);

/// Whether there is a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Since then.
    Up(Time),
    /// Since then.
    Down(Time),
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) state: LinkState,
    pub(crate) last_received: Time,
    pub(crate) spoke: Time,
    pub(crate) ticked: Time,
    pub(crate) pinged: bool,
    pub(crate) losses: u64,
    /// Waits that ended since the server was connected and did not reply.
    pub(crate) timed_out: u64,
    /// The earliest of the requests, by their order, that the server replied to since the last tick. Pings do not count.
    pub(crate) replied_from: Option<u64>,
    /// When the server last replied to a request that is no ping, or could not.
    pub(crate) replied: Time,
    /// The server says of the last connection that this client broke the protocol over it.
    pub(crate) is_blamed: bool,
}

impl Link {
    pub(crate) fn new(now: Time) -> Link {
        Link {
            state: LinkState::Up(now),
            last_received: now,
            spoke: now,
            ticked: now,
            pinged: false,
            losses: 0,
            timed_out: 0,
            replied_from: None,
            replied: now,
            is_blamed: false,
        }
    }

    /// Since when there is a connection; time 0 without one.
    pub(crate) fn up_since(&self) -> Time {
        match self.state {
            LinkState::Up(since) => since,
            LinkState::Down(_) => Time(0),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, LinkState::Up(_))
    }

    /// Whether it has been down for longer than callers wait.
    pub(crate) fn is_past(&self, now: Time, deadline: Option<Duration>) -> bool {
        match (self.state, deadline) {
            // Past a sleep it is the tick's to say.
            (LinkState::Down(since), Some(deadline)) => now.min(self.ticked + SLEEP) >= since + deadline,
            (LinkState::Down(_), None) | (LinkState::Up(_), _) => false,
        }
    }

    /// Lets time pass. Returns how long the machine slept, which counts neither as waiting nor as silence.
    pub(crate) fn ticked(&mut self, now: Time) -> Duration {
        let passed = now.since(self.ticked);
        self.ticked = now;
        if passed <= SLEEP {
            return Duration::ZERO;
        }
        self.last_received = now.min(self.last_received + passed);
        if let LinkState::Down(since) = &mut self.state {
            *since = now.min(*since + passed);
        }
        passed
    }

    pub(crate) fn received(&mut self, now: Time) {
        self.last_received = now;
        self.pinged = false;
    }

    /// Notes a reply to the request that was sent at this position.
    pub(crate) fn replied(&mut self, now: Time, order: u64) {
        self.replied_from = Some(self.replied_from.map_or(order, |from| from.min(order)));
        self.replied = now;
    }

    pub(crate) fn spoke(&mut self, now: Time) {
        self.spoke = now;
    }

    /// The time since the last sign of life. The last request may still be in transit.
    pub(crate) fn silence(&self, now: Time) -> Duration {
        now.since(self.last_received)
    }
}
