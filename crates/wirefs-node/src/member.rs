//! One node, as another knows it.

use crate::record::{Record, SignedRecord};
use crate::replay::ReplayWindow;
use core::net::SocketAddr;
use wirefs_op::Time;

/// How a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Liveness {
    /// It answers.
    Alive,
    /// It did not answer, and has a moment to say that it lives.
    Suspect,
    /// It has said nothing.
    Dead,
    /// It went by its own will.
    Left,
}

impl Liveness {
    /// Whether it counts as being there.
    pub fn is_up(self) -> bool {
        matches!(self, Liveness::Alive | Liveness::Suspect)
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Liveness::Alive => 0,
            Liveness::Suspect => 1,
            Liveness::Dead => 2,
            Liveness::Left => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Liveness> {
        [Liveness::Alive, Liveness::Suspect, Liveness::Dead, Liveness::Left].get(usize::from(code)).copied()
    }
}

/// A node as the table has it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) signed: SignedRecord,
    pub(crate) state: Liveness,
    /// Since when it is in this state.
    pub(crate) since: Time,
    /// Since when it is there.
    pub(crate) up_since: Time,
    /// When a suspect is dead.
    pub(crate) dead_at: Time,
    /// Its name leads to it.
    pub(crate) holds_name: bool,
    /// Where its last packet came from.
    pub(crate) heard_from: Option<SocketAddr>,
    pub(crate) window: ReplayWindow,
    /// When it was last told that it counts as dead, or that its name is taken.
    pub(crate) told_at: Option<Time>,
}

impl Member {
    pub(crate) fn new(signed: SignedRecord, now: Time) -> Member {
        Member {
            signed,
            state: Liveness::Alive,
            since: now,
            up_since: now,
            dead_at: now,
            holds_name: false,
            heard_from: None,
            window: ReplayWindow::default(),
            told_at: None,
        }
    }

    pub(crate) fn record(&self) -> &Record {
        &self.signed.record
    }

    /// Where packets to it go; until it was heard, the first that it names.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.addresses().next()
    }

    /// Where it may be: there where it was heard from, and until then all that it names, since some may lead nowhere from here.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let named = self.heard_from.is_none().then(|| self.record().sockets());
        self.heard_from.into_iter().chain(named.into_iter().flatten())
    }
}
