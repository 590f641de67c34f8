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

use crate::grantor::{Config, HolderKey};
use crate::limits::{HANDOVER_MAX, SILENCE};
use crate::recall::Serial;
use wirefs_op::Time;

/// Who is alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loner {
    holder: HolderKey,
    connected: bool,
    heard: Time,
    /// Of what it was told over its present connection, as long as nobody came.
    serial: Option<Serial>,
    /// It has said that it goes ahead of nothing until it is heard again.
    rests: bool,
}

/// How far it is with giving way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handover {
    /// What its answer repeats; none while it could not be told.
    serial: Option<Serial>,
    /// When the others came.
    first: Time,
    /// From when on the time counts that the next sign of it takes.
    since: Time,
    /// When it cannot believe to be alone any more, though it may not have noticed that its connection was closed.
    lapses: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Shared,
    Alone(Loner),
    GivingWay(Loner, Handover),
}

/// What became of a lone holder while time passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Stays,
    /// It is heard and does not give way: its connection has to be closed, and nothing more that comes over it answered.
    Expelled(HolderKey),
    /// It is alone no longer: others may be let on.
    Over,
}

/// Who is alone at one server, if anybody is.
#[derive(Debug)]
pub struct Solitude {
    config: Config,
    stand: Stand,
}

impl Solitude {
    /// Nobody is.
    pub fn new(config: Config) -> Solitude {
        Solitude { config, stand: Stand::Shared }
    }

    /// Whether nobody is alone: others may be let on.
    pub fn is_shared(&self) -> bool {
        self.stand == Stand::Shared
    }

    /// Whether others wait.
    pub fn is_giving_way(&self) -> bool {
        matches!(self.stand, Stand::GivingWay(..))
    }

    /// Who is alone, or has not given way yet.
    pub fn holder(&self) -> Option<HolderKey> {
        self.loner().map(|loner| loner.holder)
    }

    /// Whether it can be told anything.
    pub fn is_connected(&self) -> bool {
        self.loner().is_some_and(|loner| loner.connected)
    }

    /// A holder is about to be told that it is alone: it is there, and nobody else is, nor believes anything.
    pub fn tell(&mut self, now: Time, holder: HolderKey) {
        let loner = Loner { holder, connected: true, heard: now, serial: None, rests: false };
        self.stand = Stand::Alone(loner);
    }

    /// Others come. They wait until nobody is alone any more, which [`pass`](Self::pass) may tell at once. Says whether the
    /// holder has to be told now, with [`told`](Self::told).
    pub fn ask(&mut self, now: Time) -> bool {
        let Stand::Alone(loner) = self.stand else { return false };
        self.stand = Stand::GivingWay(loner, Handover { serial: None, first: now, since: now, lapses: None });
        loner.connected
    }

    /// The holder is told how it stands: its answer repeats `serial`.
    pub fn told(&mut self, serial: Serial) {
        match &mut self.stand {
            Stand::Shared => {}
            Stand::Alone(loner) => loner.serial = Some(serial),
            Stand::GivingWay(_, handover) => handover.serial = Some(serial),
        }
    }

    /// A message of a holder came.
    pub fn heard(&mut self, now: Time, holder: HolderKey) {
        let was_silent = |loner: &Loner| now.since(loner.heard) > SILENCE;
        match &mut self.stand {
            Stand::GivingWay(loner, handover) if loner.holder == holder => {
                if was_silent(loner) {
                    // It may see only now what it was told.
                    handover.since = now;
                }
                loner.heard = loner.heard.max(now);
            }
            Stand::Alone(loner) if loner.holder == holder => {
                (loner.heard, loner.rests) = (loner.heard.max(now), false);
            }
            Stand::Shared | Stand::Alone(_) | Stand::GivingWay(..) => {}
        }
    }

    /// One of the changes that a holder had gone ahead of is done.
    pub fn progressed(&mut self, now: Time, holder: HolderKey) {
        if let Stand::GivingWay(loner, handover) = &mut self.stand
            && loner.holder == holder
        {
            handover.since = handover.since.max(now);
        }
    }

    /// A holder answers what it was told under this number: all that it had gone ahead of is at the server. Where it was told to
    /// be alone it [`rest`](Self::rest)s by that. Says whether the number is one that counts.
    pub fn answered(&mut self, holder: HolderKey, serial: Serial) -> bool {
        let (loner, asked) = match &self.stand {
            Stand::Shared => return false,
            Stand::Alone(loner) => (loner, None),
            Stand::GivingWay(loner, handover) => (loner, handover.serial),
        };
        let is_it = loner.holder == holder && [loner.serial, asked].contains(&Some(serial));
        if is_it {
            self.rest(holder);
        }
        is_it
    }

    /// A holder says that it goes ahead of nothing, until it is heard again.
    pub fn rest(&mut self, holder: HolderKey) {
        match &mut self.stand {
            Stand::Alone(loner) if loner.holder == holder => loner.rests = true,
            Stand::GivingWay(loner, _) if loner.holder == holder => self.stand = Stand::Shared,
            Stand::Shared | Stand::Alone(_) | Stand::GivingWay(..) => {}
        }
    }

    /// The connection of a holder is gone.
    pub fn cut(&mut self, holder: HolderKey) {
        match &mut self.stand {
            Stand::Alone(loner) if loner.holder == holder && loner.rests => self.stand = Stand::Shared,
            Stand::Alone(loner) if loner.holder == holder => (loner.connected, loner.serial) = (false, None),
            Stand::GivingWay(loner, handover) if loner.holder == holder => {
                (loner.connected, loner.serial, handover.serial) = (false, None, None);
            }
            Stand::Shared | Stand::Alone(_) | Stand::GivingWay(..) => {}
        }
    }

    /// A holder has come back over another connection. It has to be told how it stands, since a connection begins with
    /// nobody alone.
    pub fn join(&mut self, now: Time, holder: HolderKey) {
        self.cut(holder);
        match &mut self.stand {
            Stand::Alone(loner) if loner.holder == holder => {
                (loner.connected, loner.heard, loner.rests) = (true, now, false);
            }
            Stand::GivingWay(loner, handover) if loner.holder == holder => {
                (loner.connected, loner.heard, handover.since) = (true, now, now);
            }
            Stand::Shared | Stand::Alone(_) | Stand::GivingWay(..) => {}
        }
    }

    /// A holder does not go ahead of the server any more, nor ever did by what it says now.
    pub fn leave(&mut self, holder: HolderKey) {
        if self.holder() == Some(holder) {
            self.stand = Stand::Shared;
        }
    }

    /// Lets time pass.
    pub fn pass(&mut self, now: Time) -> Standing {
        let is_over = match &self.stand {
            Stand::Shared => false,
            Stand::Alone(loner) => !loner.connected && self.is_past(now, loner),
            Stand::GivingWay(loner, handover) => {
                self.is_past(now, loner) || handover.lapses.is_some_and(|lapses| lapses <= now)
            }
        };
        if is_over {
            self.stand = Stand::Shared;
            return Standing::Over;
        }
        let is_due = self.expel_at().is_some_and(|due| due <= now);
        match &mut self.stand {
            Stand::GivingWay(loner, handover) if is_due => {
                (loner.connected, loner.serial, handover.serial) = (false, None, None);
                handover.lapses = Some(now + self.config.term + self.config.margin);
                Standing::Expelled(loner.holder)
            }
            Stand::Shared | Stand::Alone(_) | Stand::GivingWay(..) => Standing::Stays,
        }
    }

    /// When time has to pass next.
    pub fn deadline(&self) -> Option<Time> {
        match &self.stand {
            Stand::Shared => None,
            Stand::Alone(loner) => (!loner.connected).then(|| self.run_out_at(loner)),
            Stand::GivingWay(loner, handover) => {
                [Some(self.run_out_at(loner)), handover.lapses, self.expel_at()].into_iter().flatten().min()
            }
        }
    }

    fn loner(&self) -> Option<&Loner> {
        match &self.stand {
            Stand::Shared => None,
            Stand::Alone(loner) | Stand::GivingWay(loner, _) => Some(loner),
        }
    }

    /// When it believes nothing any more if it is not heard before.
    fn run_out_at(&self, loner: &Loner) -> Time {
        loner.heard + self.config.term + self.config.margin
    }

    fn is_past(&self, now: Time, loner: &Loner) -> bool {
        loner.rests || self.run_out_at(loner) <= now
    }

    /// When it must have given way, or be heard of. Not when it will be silent by then: it has run out soon after.
    fn expel_at(&self) -> Option<Time> {
        let Stand::GivingWay(loner, handover) = &self.stand else { return None };
        let due = (handover.since + self.config.answer).min(handover.first + HANDOVER_MAX);
        let is_there = loner.connected && handover.lapses.is_none();
        Some(due).filter(|due| is_there && *due <= loner.heard + SILENCE)
    }
}

#[cfg(test)]
mod tests;
