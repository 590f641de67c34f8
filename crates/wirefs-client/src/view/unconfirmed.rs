//! Changes that were answered before the server has confirmed them.

use crate::view::durable::Durable;
use crate::view::shown::Shown;
use std::collections::{BTreeMap, VecDeque};
use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, Time, Timestamp, TreePath};

/// Late errors that are remembered for `wirefs status`.
pub(crate) const LATE_MAX: usize = 64;

/// A change that the server refused after its program was told that it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateError {
    /// The kind of request.
    pub what: &'static str,
    /// Of what, below the mount's root.
    pub path: TreePath,
    /// The server's errno.
    pub errno: Errno,
    /// When.
    pub at: Time,
}

/// How far this client is ahead.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Whether the session is exclusive: the server admits no other before this one agrees.
    pub(crate) is_alone: bool,
    /// The session was exclusive when its connection was lost, and the server has not said yet whether it still is.
    pub(crate) was_exclusive: bool,
    /// Others wait: to be told once everything is answered.
    pub(crate) shares: Option<u64>,
    /// An optimistic reply is being taken in.
    pub(crate) is_optimistic: bool,
    /// By their numbers.
    pub(crate) unconfirmed: BTreeMap<u64, Unconfirmed>,
    /// Changes issued while ahead, and how many of them are answered, over the life of the mount.
    pub(crate) issued: u64,
    pub(crate) answered: u64,
    pub(crate) shown: Shown,
    /// Bytes and inodes taken since the server said how much room there is.
    pub(crate) taken: (u64, u64),
    pub(crate) asks_room: bool,
    pub(crate) late: VecDeque<LateError>,
    pub(crate) late_count: u64,
    pub(crate) durable: Durable,
    /// The journal has no room: it is begun anew once the server's disk has everything.
    pub(crate) awaits_room: bool,
    /// The latest change time that the server has reported for own changes.
    pub(crate) seen: Timestamp,
    /// The server's clock: a change time that it reported, and our time when that change was requested, which is not
    /// later.
    pub(crate) server_clock: Option<(Timestamp, Time)>,
}

impl Ahead {
    /// Notes an issued change, which makes a sync of the server's disk due.
    pub(crate) fn changes(&mut self) {
        self.durable.is_due = true;
    }

    /// A change was issued that its program does not wait for.
    pub(crate) fn issued(&mut self, bytes: u64, files: u64) {
        self.issued += 1;
        self.taken = (self.taken.0 + bytes, self.taken.1 + files);
    }

    /// It was answered.
    pub(crate) fn answered(&mut self) {
        self.answered += 1;
    }

    /// How many unconfirmed changes were answered over the life of the mount.
    pub(crate) fn answered_count(&self) -> u64 {
        self.answered
    }

    /// Whether there are unconfirmed changes.
    pub(crate) fn is_any(&self) -> bool {
        self.answered < self.issued
    }

    pub(crate) fn outstanding(&self) -> u64 {
        self.issued - self.answered
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    pub(crate) fn late(&self) -> impl Iterator<Item = &LateError> {
        self.late.iter()
    }
}

/// A change that is answered and not confirmed.
#[derive(Clone, Debug)]
pub(crate) struct Unconfirmed {
    /// The objects that it changes; each is held, and being written.
    pub(crate) nodes: Vec<TreeNodeId>,
    /// The names that it changes.
    pub(crate) names: Vec<(TreeNodeId, Vec<u8>)>,
    /// The new object.
    pub(crate) makes: Option<Made>,
    /// The file that it opens, and the open file that gets the server's fd.
    pub(crate) opens: Option<(TreeNodeId, crate::call::Handle)>,
    pub(crate) path: TreePath,
    pub(crate) what: &'static str,
}

/// An object that the server does not have yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) node: TreeNodeId,
    /// The open file that made it, which gets the server's fd.
    pub(crate) handle: Option<crate::call::Handle>,
}
