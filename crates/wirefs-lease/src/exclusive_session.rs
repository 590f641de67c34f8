//! Whether one holder is alone, and how it gives way when others come.
//!
//! A holder that is told so goes ahead of the server: it answers its programs as the server is going to, and sends the
//! changes behind. So whoever comes waits until all of that has arrived.
//!
//! ```text
//!             tell                       ask
//!   Shared ──────────► Alone(holder) ──────────► GivingWay(holder)
//!     ▲                     │ away for term + margin     │ has answered; rests; is silent for term + margin;
//!     └─────────────────────┴────────────────────────────┘ or was expelled as long ago
//! ```
//! INVARIANT: as long as it is not `Shared`, nobody else is let on.

use crate::grantor::{HolderKey, LeaseConfig};
use crate::limits::{EXCLUSIVE_RECALL_MAX, SILENCE};
use crate::recall::Serial;
use wirefs_op::Time;

/// Who is alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SoleHolder {
    holder: HolderKey,
    connected: bool,
    renewed_at: Time,
    /// Of what it was told over its present connection, as long as nobody came.
    serial: Option<Serial>,
    /// It has said that it goes ahead of nothing until it is heard again.
    has_released: bool,
}

/// How far it is with giving way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExclusiveRecall {
    /// What its answer repeats; none while it could not be told.
    serial: Option<Serial>,
    /// When the others came.
    first: Time,
    /// From when on the time counts that the next sign of it takes.
    since: Time,
    /// When it cannot believe to be alone any more, though it may not have noticed that its connection was closed.
    expires: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exclusivity {
    Shared,
    Exclusive(SoleHolder),
    Recalling(SoleHolder, ExclusiveRecall),
}

/// What became of a lone holder while time passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExclusiveOutcome {
    /// Nothing.
    Stays,
    /// It is heard and does not give way: its connection has to be closed, and nothing more that comes over it answered.
    Expelled(HolderKey),
    /// It is alone no longer: others may be let on.
    Shared,
}

/// Who is alone at one server, if anybody is.
#[derive(Debug)]
pub struct ExclusiveSession {
    config: LeaseConfig,
    state: Exclusivity,
}

impl ExclusiveSession {
    /// Nobody is.
    pub fn new(config: LeaseConfig) -> ExclusiveSession {
        ExclusiveSession { config, state: Exclusivity::Shared }
    }

    /// Whether nobody is alone: others may be let on.
    pub fn is_shared(&self) -> bool {
        self.state == Exclusivity::Shared
    }

    /// Whether others wait.
    pub fn is_recalling(&self) -> bool {
        matches!(self.state, Exclusivity::Recalling(..))
    }

    /// Who is alone, or has not given way yet.
    pub fn holder(&self) -> Option<HolderKey> {
        self.sole().map(|sole| sole.holder)
    }

    /// Whether it can be told anything.
    pub fn is_connected(&self) -> bool {
        self.sole().is_some_and(|sole| sole.connected)
    }

    /// A holder is about to be told that it is alone: it is there, and nobody else is, nor believes anything.
    pub fn grant(&mut self, now: Time, holder: HolderKey) {
        let sole = SoleHolder { holder, connected: true, renewed_at: now, serial: None, has_released: false };
        self.state = Exclusivity::Exclusive(sole);
    }

    /// Others come. They wait until nobody is alone any more, which [`pass`](Self::pass) may tell at once. Says whether the
    /// holder has to be told now, with [`told`](Self::told).
    pub fn recall(&mut self, now: Time) -> bool {
        let Exclusivity::Exclusive(sole) = self.state else { return false };
        self.state = Exclusivity::Recalling(
            sole,
            ExclusiveRecall { serial: None, first: now, since: now, expires: None },
        );
        sole.connected
    }

    /// The holder is told how it stands: its answer repeats `serial`.
    pub fn notice_sent(&mut self, serial: Serial) {
        match &mut self.state {
            Exclusivity::Shared => {}
            Exclusivity::Exclusive(sole) => sole.serial = Some(serial),
            Exclusivity::Recalling(_, recall) => recall.serial = Some(serial),
        }
    }

    /// A message of a holder came.
    pub fn renew(&mut self, now: Time, holder: HolderKey) {
        let was_silent = |sole: &SoleHolder| now.since(sole.renewed_at) > SILENCE;
        match &mut self.state {
            Exclusivity::Recalling(sole, recall) if sole.holder == holder => {
                if was_silent(sole) {
                    // It may see only now what it was told.
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

    /// One of the changes that a holder had gone ahead of is done.
    pub fn progressed(&mut self, now: Time, holder: HolderKey) {
        if let Exclusivity::Recalling(sole, recall) = &mut self.state
            && sole.holder == holder
        {
            recall.since = recall.since.max(now);
        }
    }

    /// A holder answers what it was told under this number: all that it had gone ahead of is at the server. Where it was told to
    /// be alone it [`rest`](Self::rest)s by that. Says whether the number is one that counts.
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

    /// A holder says that it goes ahead of nothing, until it is heard again.
    pub fn release(&mut self, holder: HolderKey) {
        match &mut self.state {
            Exclusivity::Exclusive(sole) if sole.holder == holder => sole.has_released = true,
            Exclusivity::Recalling(sole, _) if sole.holder == holder => self.state = Exclusivity::Shared,
            Exclusivity::Shared | Exclusivity::Exclusive(_) | Exclusivity::Recalling(..) => {}
        }
    }

    /// The connection of a holder is gone.
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

    /// A holder has come back over another connection. It has to be told how it stands, since a connection begins with
    /// nobody alone.
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

    /// A holder does not go ahead of the server any more, nor ever did by what it says now.
    pub fn end(&mut self, holder: HolderKey) {
        if self.holder() == Some(holder) {
            self.state = Exclusivity::Shared;
        }
    }

    /// Lets time pass.
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

    /// When time has to pass next.
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

    /// When it believes nothing any more if it is not heard before.
    fn expires_at(&self, sole: &SoleHolder) -> Time {
        sole.renewed_at + self.config.term + self.config.margin
    }

    fn is_expired(&self, now: Time, sole: &SoleHolder) -> bool {
        sole.has_released || self.expires_at(sole) <= now
    }

    /// When it must have given way, or be heard of. Not when it will be silent by then: it has run out soon after.
    fn expel_at(&self) -> Option<Time> {
        let Exclusivity::Recalling(sole, recall) = &self.state else { return None };
        let due = (recall.since + self.config.answer).min(recall.first + EXCLUSIVE_RECALL_MAX);
        let is_there = sole.connected && recall.expires.is_none();
        Some(due).filter(|due| is_there && *due <= sole.renewed_at + SILENCE)
    }
}

#[cfg(test)]
mod tests;
