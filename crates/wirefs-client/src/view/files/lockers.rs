//! The owners of a file's locks, and the open files through which they took them. Some of these files are closed
//! without a flush.

use crate::call::Handle;
use crate::view::files::Files;
use std::collections::BTreeMap;
use wirefs_cache::TreeNodeId;

/// Owners that took POSIX locks on one file.
#[derive(Debug, Default)]
pub(crate) struct Lockers {
    /// Each with the open file through which it did so the last time.
    owners: BTreeMap<u64, Handle>,
    /// Whether an owner ever did.
    were_any: bool,
}

impl Lockers {
    /// Removes an owner, which releases all its locks. Returns whether it may hold some.
    pub(crate) fn leaves(&mut self, owner: u64) -> bool {
        self.owners.remove(&owner).is_some()
    }
}

impl Files {
    /// An owner is about to lock the file through this open file.
    pub(crate) fn locks_through(&mut self, node: TreeNodeId, owner: u64, handle: Handle) {
        let lockers = &mut self.contents(node).lockers;
        lockers.owners.insert(owner, handle);
        lockers.were_any = true;
    }

    /// Whether anybody took a POSIX lock on the file since it is known.
    pub(crate) fn was_locked(&self, node: TreeNodeId) -> bool {
        self.known(node).is_some_and(|contents| contents.lockers.were_any)
    }

    /// The owners that may hold locks and took the last of them through this open file.
    pub(crate) fn lockers_through(&self, node: TreeNodeId, handle: Handle) -> Vec<u64> {
        let owners = self.known(node).map(|contents| &contents.lockers.owners);
        owners
            .into_iter()
            .flatten()
            .filter(|(_, through)| **through == handle)
            .map(|(owner, _)| *owner)
            .collect()
    }
}
