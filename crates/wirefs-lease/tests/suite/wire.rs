//! Messages and their delays.

use crate::store::{Fact, Value};
use wirefs_lease::{LeaseItem, Serial};
use wirefs_op::Time;
use wirefs_virtual::{Dice, InOrder, delay};

/// A connection between a client and the server; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Connection(pub(crate) u64);

/// A change as a client requests it, with the objects that it expects at its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    /// The objects that the client expects to change.
    pub(crate) expected: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Write(u64, &'static str),
    Create(u64, &'static str),
    Unlink(u64, &'static str),
    Rename((u64, &'static str), (u64, &'static str)),
    Chmod(u64),
}

impl ChangeKind {
    /// Returns the names that change.
    pub(crate) fn names(self) -> Vec<(u64, &'static str)> {
        match self {
            ChangeKind::Write(..) | ChangeKind::Chmod(_) => Vec::new(),
            ChangeKind::Create(directory, name) | ChangeKind::Unlink(directory, name) => {
                vec![(directory, name)]
            }
            ChangeKind::Rename(from, to) if from == to => vec![from],
            ChangeKind::Rename(from, to) => vec![from, to],
        }
    }

    /// Returns the facts that change regardless of the objects at the names.
    pub(crate) fn facts(self) -> Vec<Fact> {
        let names = self.names();
        let mut facts: Vec<Fact> =
            names.iter().map(|(directory, name)| Fact::Name(*directory, name)).collect();
        facts.extend(names.iter().map(|(directory, _)| Fact::Attributes(*directory)));
        if let ChangeKind::Chmod(directory) = self {
            facts.push(Fact::Attributes(directory));
        }
        facts
    }

    /// Returns the names whose objects change too.
    pub(crate) fn victims(self) -> Vec<(u64, &'static str)> {
        match self {
            ChangeKind::Write(directory, name) | ChangeKind::Unlink(directory, name) => {
                vec![(directory, name)]
            }
            ChangeKind::Rename(from, to) => vec![from, to],
            ChangeKind::Create(..) | ChangeKind::Chmod(_) => Vec::new(),
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

/// A message from a client.
#[derive(Clone, Debug)]
pub(crate) enum Up {
    Attach,
    Request(u64, Ask),
    Recalled(Serial),
}

/// A message to a client.
#[derive(Clone, Debug)]
pub(crate) enum Down {
    Attached {
        retained: bool,
    },
    /// The reply to a request: current facts, each with a flag for its lease.
    Reply(u64, Vec<(Fact, Value, bool)>),
    Recall(Serial, Vec<LeaseItem>),
    Closed,
}

/// Both directions between a client and the server.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wires {
    /// The order of each kind of message.
    requests: InOrder,
    answers: InOrder,
    recalls: InOrder,
    /// No message arrives before this time.
    pub(crate) stalled_until: Time,
}

impl Wires {
    pub(crate) fn stalled(stalled_until: Time) -> Wires {
        Wires { stalled_until, ..Wires::default() }
    }

    fn late(&self, now: Time, dice: &mut Dice) -> Time {
        let span = if dice.chance(5, 100) { (0, 3_000_000) } else { (100, 60_000) };
        (now + delay(dice, span)).max(self.stalled_until)
    }

    /// Returns the arrival time. Requests stay in order, and so do answers to recalls.
    pub(crate) fn up(&mut self, now: Time, dice: &mut Dice, up: &Up) -> Time {
        let at = self.late(now, dice);
        match up {
            Up::Attach | Up::Request(..) => self.requests.arrives(at),
            Up::Recalled(_) => self.answers.arrives(at),
        }
    }

    /// Returns the arrival time. Recalls stay in order; replies arrive in any order, but not before a recall
    /// that was queued earlier.
    pub(crate) fn down(&mut self, now: Time, dice: &mut Dice, down: &Down, overtakes: bool) -> Time {
        let at = self.late(now, dice);
        match down {
            Down::Recall(..) => self.recalls.arrives(at),
            Down::Reply(..) if overtakes => at,
            Down::Reply(..) => at.max(self.recalls.last()),
            Down::Attached { .. } | Down::Closed => at,
        }
    }
}
