//! The exclusive session of an export: granting it to a sole client, and recalling it when other sessions
//! arrive.
//!
//! A client with an exclusive session executes changes optimistically: it answers its programs before the
//! server has executed the changes, and sends them later. A new session therefore waits until all of them
//! have arrived.
//!
//! ```text
//!             grant                        recall
//!   Shared ──────────► Exclusive(holder) ──────────► Recalling(holder)
//!     ▲                     │ disconnected and expired    │ answered, released, silent for term + margin,
//!     └─────────────────────┴─────────────────────────────┘ or expelled as long ago
//! ```
//! INVARIANT: while the state is not `Shared`, no other session attaches.

use crate::grantor::{HolderKey, LeaseConfig};
use crate::limits::{EXCLUSIVE_RECALL_MAX, SILENCE};
use crate::recall::Serial;
use wirefs_op::Time;

/// The holder of the exclusive session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SoleHolder {
    holder: HolderKey,
    connected: bool,
    renewed_at: Time,
    /// The serial of the last notice on the current connection, before any recall.
    serial: Option<Serial>,
    /// The holder has declared that it executes nothing optimistically before its next message.
    has_released: bool,
}

/// The progress of a recall of the exclusive session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExclusiveRecall {
    /// The serial that the holder's answer repeats; `None` while no notice was sent.
    serial: Option<Serial>,
    /// The start of the recall.
    first: Time,
    /// The start of the timeout for the holder's next answer or finished change.
    since: Time,
    /// The time when an expelled holder can no longer consider itself exclusive, even if it did not notice
    /// the closed connection.
    expires: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exclusivity {
    Shared,
    Exclusive(SoleHolder),
    Recalling(SoleHolder, ExclusiveRecall),
}

/// The result of [`ExclusiveSession::tick`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExclusiveOutcome {
    /// No transition.
    Stays,
    /// The holder is alive but does not answer the recall. The caller closes its connection and answers
    /// nothing more that arrives on it.
    Expelled(HolderKey),
    /// The exclusive session has ended: waiting sessions may attach.
    Shared,
}

/// Tracks the exclusive session of one server.
#[derive(Debug)]
pub struct ExclusiveSession {
    config: LeaseConfig,
    state: Exclusivity,
}

impl ExclusiveSession {
    /// Creates a tracker in the state `Shared`.
    pub fn new(config: LeaseConfig) -> ExclusiveSession {
        ExclusiveSession { config, state: Exclusivity::Shared }
    }

    /// Returns true if no holder has the exclusive session, so that other sessions may attach.
    pub fn is_shared(&self) -> bool {
        self.state == Exclusivity::Shared
    }

    /// Returns true if a recall is in progress.
    pub fn is_recalling(&self) -> bool {
        matches!(self.state, Exclusivity::Recalling(..))
    }

    /// Returns the holder of the exclusive session, also while it is being recalled.
    pub fn holder(&self) -> Option<HolderKey> {
        self.sole().map(|sole| sole.holder)
    }

    /// Returns true if the holder has a connection over which a notice can be sent.
    pub fn is_connected(&self) -> bool {
        self.sole().is_some_and(|sole| sole.connected)
    }

    /// Makes a holder exclusive. The caller guarantees that the holder is connected, and that no other
    /// session exists or holds leases.
    pub fn grant(&mut self, now: Time, holder: HolderKey) {
        let sole = SoleHolder { holder, connected: true, renewed_at: now, serial: None, has_released: false };
        self.state = Exclusivity::Exclusive(sole);
    }

    /// Starts the recall of the exclusive session, because other sessions arrived. They wait until the state
    /// is `Shared`; the next [`tick`](Self::tick) may already report that. Returns true if the caller must
    /// notify the holder now and call [`notice_sent`](Self::notice_sent).
    pub fn recall(&mut self, now: Time) -> bool {
        let Exclusivity::Exclusive(sole) = self.state else { return false };
        self.state = Exclusivity::Recalling(
            sole,
            ExclusiveRecall { serial: None, first: now, since: now, expires: None },
        );
        sole.connected
    }

    /// Records that a notice of the current state was sent to the holder, whose answer repeats `serial`.
    pub fn notice_sent(&mut self, serial: Serial) {
        match &mut self.state {
            Exclusivity::Shared => {}
            Exclusivity::Exclusive(sole) => sole.serial = Some(serial),
            Exclusivity::Recalling(_, recall) => recall.serial = Some(serial),
        }
    }

    /// Records a message from a holder.
    pub fn renew(&mut self, now: Time, holder: HolderKey) {
        let was_silent = |sole: &SoleHolder| now.since(sole.renewed_at) > SILENCE;
        match &mut self.state {
            Exclusivity::Recalling(sole, recall) if sole.holder == holder => {
                if was_silent(sole) {
                    // The holder may read the pending notice only now.
                    recall.since = now;
                }
                sole.renewed_at = sole.renewed_at.max(now);
            }
            Exclusivity::Exclusive(sole) if sole.holder == holder => {
                (sole.renewed_at, sole.has_released) = (sole.renewed_at.max(now), false);
            }
            Exclusivity::Shared | Exclusivity::Exclusive(_) | Exclusivity::Recalling(..) => {}
        }
    }

    /// Records that the server has executed one of the holder's optimistic changes.
    pub fn progressed(&mut self, now: Time, holder: HolderKey) {
        if let Exclusivity::Recalling(sole, recall) = &mut self.state
            && sole.holder == holder
        {
            recall.since = recall.since.max(now);
        }
    }

    /// Records the holder's answer to the notice `serial`: all its optimistic changes have arrived. The
    /// answer to a grant counts as a [`release`](Self::release). Returns true if the serial is one that is
    /// expected.
    pub fn answered(&mut self, holder: HolderKey, serial: Serial) -> bool {
        let (sole, asked) = match &self.state {
            Exclusivity::Shared => return false,
            Exclusivity::Exclusive(sole) => (sole, None),
            Exclusivity::Recalling(sole, recall) => (sole, recall.serial),
        };
        let is_it = sole.holder == holder && [sole.serial, asked].contains(&Some(serial));
        if is_it {
            self.release(holder);
        }
        is_it
    }

    /// Records that a holder executes nothing optimistically before its next message.
    pub fn release(&mut self, holder: HolderKey) {
        match &mut self.state {
            Exclusivity::Exclusive(sole) if sole.holder == holder => sole.has_released = true,
            Exclusivity::Recalling(sole, _) if sole.holder == holder => self.state = Exclusivity::Shared,
            Exclusivity::Shared | Exclusivity::Exclusive(_) | Exclusivity::Recalling(..) => {}
        }
    }

    /// Records that a holder's connection was closed.
    pub fn disconnected(&mut self, holder: HolderKey) {
        match &mut self.state {
            Exclusivity::Exclusive(sole) if sole.holder == holder && sole.has_released => {
                self.state = Exclusivity::Shared
            }
            Exclusivity::Exclusive(sole) if sole.holder == holder => {
                (sole.connected, sole.serial) = (false, None)
            }
            Exclusivity::Recalling(sole, recall) if sole.holder == holder => {
                (sole.connected, sole.serial, recall.serial) = (false, None, None);
            }
            Exclusivity::Shared | Exclusivity::Exclusive(_) | Exclusivity::Recalling(..) => {}
        }
    }

    /// Records that a holder has reconnected. The caller must send it a notice of the current state, since
    /// each connection starts as not exclusive.
    pub fn reconnected(&mut self, now: Time, holder: HolderKey) {
        self.disconnected(holder);
        match &mut self.state {
            Exclusivity::Exclusive(sole) if sole.holder == holder => {
                (sole.connected, sole.renewed_at, sole.has_released) = (true, now, false);
            }
            Exclusivity::Recalling(sole, recall) if sole.holder == holder => {
                (sole.connected, sole.renewed_at, recall.since) = (true, now, now);
            }
            Exclusivity::Shared | Exclusivity::Exclusive(_) | Exclusivity::Recalling(..) => {}
        }
    }

    /// Ends the exclusive session of a holder that no longer executes optimistically, or that declares it
    /// never did.
    pub fn end(&mut self, holder: HolderKey) {
        if self.holder() == Some(holder) {
            self.state = Exclusivity::Shared;
        }
    }

    /// Advances the clock: ends or expels a holder whose time is over.
    pub fn tick(&mut self, now: Time) -> ExclusiveOutcome {
        let is_over = match &self.state {
            Exclusivity::Shared => false,
            Exclusivity::Exclusive(sole) => !sole.connected && self.is_expired(now, sole),
            Exclusivity::Recalling(sole, recall) => {
                self.is_expired(now, sole) || recall.expires.is_some_and(|expires| expires <= now)
            }
        };
        if is_over {
            self.state = Exclusivity::Shared;
            return ExclusiveOutcome::Shared;
        }
        let is_due = self.expel_at().is_some_and(|due| due <= now);
        match &mut self.state {
            Exclusivity::Recalling(sole, recall) if is_due => {
                (sole.connected, sole.serial, recall.serial) = (false, None, None);
                recall.expires = Some(now + self.config.term + self.config.margin);
                ExclusiveOutcome::Expelled(sole.holder)
            }
            Exclusivity::Shared | Exclusivity::Exclusive(_) | Exclusivity::Recalling(..) => {
                ExclusiveOutcome::Stays
            }
        }
    }

    /// Returns the time of the next transition, when [`tick`](Self::tick) is due.
    pub fn deadline(&self) -> Option<Time> {
        match &self.state {
            Exclusivity::Shared => None,
            Exclusivity::Exclusive(sole) => (!sole.connected).then(|| self.expires_at(sole)),
            Exclusivity::Recalling(sole, recall) => {
                [Some(self.expires_at(sole)), recall.expires, self.expel_at()].into_iter().flatten().min()
            }
        }
    }

    fn sole(&self) -> Option<&SoleHolder> {
        match &self.state {
            Exclusivity::Shared => None,
            Exclusivity::Exclusive(sole) | Exclusivity::Recalling(sole, _) => Some(sole),
        }
    }

    /// Returns the time when the holder's leases expire unless it sends a message before.
    fn expires_at(&self, sole: &SoleHolder) -> Time {
        sole.renewed_at + self.config.term + self.config.margin
    }

    fn is_expired(&self, now: Time, sole: &SoleHolder) -> bool {
        sole.has_released || self.expires_at(sole) <= now
    }

    /// Returns the time when the holder must have answered or made progress. `None` if the holder will count
    /// as silent by then, since its leases expire soon after.
    fn expel_at(&self) -> Option<Time> {
        let Exclusivity::Recalling(sole, recall) = &self.state else { return None };
        let due = (recall.since + self.config.answer).min(recall.first + EXCLUSIVE_RECALL_MAX);
        let is_there = sole.connected && recall.expires.is_none();
        Some(due).filter(|due| is_there && *due <= sole.renewed_at + SILENCE)
    }
}

#[cfg(test)]
mod tests;
