//! Continuations of requests about locks.

use super::continuation::Continuation;
use crate::call::{CallId, Handle};
use crate::view::locks::{Asked, Key, Locks};
use wirefs_cache::TreeNodeId;
use wirefs_op::message::lock::LockAction;
use wirefs_op::{LockFamily, LockRange};

/// A lock, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockWanted {
    pub(crate) owner: u64,
    pub(crate) family: LockFamily,
    pub(crate) range: LockRange,
}

/// A lock that was requested, or tested.
#[derive(Clone, Debug)]
pub(crate) struct Locking {
    pub(crate) call: CallId,
    pub(crate) node: TreeNodeId,
    pub(crate) handle: Handle,
    pub(crate) wanted: LockWanted,
    pub(crate) action: LockAction,
    /// A delegation is requested, and the caller would wait for its own lock.
    pub(crate) then_waits: bool,
    /// A delegation is requested because of this lock.
    pub(crate) delegates: bool,
    /// The caller was interrupted: a lock that is granted nevertheless is released.
    pub(crate) withdrawn: bool,
}

impl Locking {
    /// Whether it waits until other holders release their locks.
    pub(crate) fn is_waiting(&self) -> bool {
        self.action == LockAction::Wait || self.then_waits
    }

    /// Ends the wait of the caller. Returns whether the server must be told.
    pub(crate) fn withdraw(&mut self) -> bool {
        let waits = self.action == LockAction::Wait && !self.withdrawn;
        self.then_waits = false;
        self.withdrawn = true;
        waits
    }

    pub(crate) fn key(&self) -> Key {
        Locks::key(self.node, self.wanted.family)
    }

    pub(crate) fn asked(&self, waits: bool) -> Asked {
        let LockWanted { owner, range, .. } = self.wanted;
        Asked::Lock { call: self.call, handle: self.handle, owner, range, waits }
    }
}

impl Continuation for Locking {
    fn restart(&mut self) -> bool {
        !self.withdrawn
    }
}

/// The release of a lock on this node; no call waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unlocking(pub(crate) TreeNodeId);

impl Continuation for Unlocking {
    fn outlives_deadline(&self) -> bool {
        true
    }
}
