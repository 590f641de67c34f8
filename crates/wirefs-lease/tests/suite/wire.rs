//! What travels, and how late it comes.

use crate::dice::Dice;
use crate::store::{Fact, Value};
use wirefs_lease::{Item, Serial};
use wirefs_op::Time;

/// A connection between a client and the server; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Connection(pub(crate) u64);

/// A change as a client asks for it, with what it takes the names for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) what: What,
    /// The objects that the client knows to be concerned.
    pub(crate) expected: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Write(u64, &'static str),
    Create(u64, &'static str),
    Unlink(u64, &'static str),
    Rename((u64, &'static str), (u64, &'static str)),
    Chmod(u64),
}

impl What {
    /// The names that change.
    pub(crate) fn names(self) -> Vec<(u64, &'static str)> {
        match self {
            What::Write(..) | What::Chmod(_) => Vec::new(),
            What::Create(directory, name) | What::Unlink(directory, name) => vec![(directory, name)],
            What::Rename(from, to) if from == to => vec![from],
            What::Rename(from, to) => vec![from, to],
        }
    }

    /// The facts that change whatever the names mean.
    pub(crate) fn facts(self) -> Vec<Fact> {
        let names = self.names();
        let mut facts: Vec<Fact> =
            names.iter().map(|(directory, name)| Fact::Name(*directory, name)).collect();
        facts.extend(names.iter().map(|(directory, _)| Fact::Attributes(*directory)));
        if let What::Chmod(directory) = self {
            facts.push(Fact::Attributes(directory));
        }
        facts
    }

    /// The names whose objects change too.
    pub(crate) fn victims(self) -> Vec<(u64, &'static str)> {
        match self {
            What::Write(directory, name) | What::Unlink(directory, name) => vec![(directory, name)],
            What::Rename(from, to) => vec![from, to],
            What::Create(..) | What::Chmod(_) => Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Ping,
    Attributes(u64),
    Lookup(u64, &'static str),
    List(u64),
    Change(Change),
}

/// From a client.
#[derive(Clone, Debug)]
pub(crate) enum Up {
    Attach,
    Request(u64, Ask),
    Recalled(Serial),
}

/// To a client.
#[derive(Clone, Debug)]
pub(crate) enum Down {
    Attached {
        kept: bool,
    },
    /// To a request: what is so now, and whether it is leased.
    Reply(u64, Vec<(Fact, Value, bool)>),
    Recall(Serial, Vec<Item>),
    Closed,
}

/// Both ways between a client and the server.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ways {
    /// When the last of each kind arrives.
    requests: Time,
    answers: Time,
    recalls: Time,
    /// Nothing arrives before.
    pub(crate) stalled_until: Time,
}

impl Ways {
    pub(crate) fn stalled(stalled_until: Time) -> Ways {
        Ways { stalled_until, ..Ways::default() }
    }

    fn late(&self, now: Time, dice: &mut Dice) -> Time {
        let micros = if dice.percent(5) { dice.between(0, 3_000_000) } else { dice.between(100, 60_000) };
        Time(now.0 + micros * 1000).max(self.stalled_until)
    }

    /// Requests stay in order among each other, and so do answers to recalls.
    pub(crate) fn up(&mut self, now: Time, dice: &mut Dice, up: &Up) -> Time {
        let at = self.late(now, dice);
        let last = match up {
            Up::Attach | Up::Request(..) => &mut self.requests,
            Up::Recalled(_) => &mut self.answers,
        };
        *last = at.max(*last);
        *last
    }

    /// Recalls stay in order; replies come in any order, but no reply before a recall that was queued before it.
    pub(crate) fn down(&mut self, now: Time, dice: &mut Dice, down: &Down, overtakes: bool) -> Time {
        let at = self.late(now, dice);
        match down {
            Down::Recall(..) => {
                self.recalls = at.max(self.recalls);
                self.recalls
            }
            Down::Reply(..) if overtakes => at,
            Down::Reply(..) => at.max(self.recalls),
            Down::Attached { .. } | Down::Closed => at,
        }
    }
}
