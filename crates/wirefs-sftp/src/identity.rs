//! Inode numbers for objects that have only paths.
//!
//! A number is computed from the parent's number and the name. A table has the exceptions: a renamed object keeps its
//! number, and so all below it do. A name that was removed or renamed gets a new number for its next object.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of the tree's root.
pub(crate) const ROOT: u64 = 1;

/// The inode numbers of a tree.
///
/// # Cost
/// About 24 bytes for each name that was removed or renamed through this tree.
#[derive(Default)]
pub(crate) struct Identities {
    /// The server must not choose names with equal numbers.
    hasher: RandomState,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// By the computed number of parent and name.
    exceptions: BTreeMap<u64, u64>,
    fresh: u64,
}

impl Identities {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn computed(&self, parent: u64, name: &[u8]) -> u64 {
        self.hasher.hash_one((parent, name)).max(ROOT + 1)
    }

    /// Returns the number of a name in a directory.
    pub(crate) fn child(&self, parent: u64, name: &[u8]) -> u64 {
        let computed = self.computed(parent, name);
        self.table().exceptions.get(&computed).copied().unwrap_or(computed)
    }

    /// Returns the number of the object at a path: its names below the tree's root.
    pub(crate) fn of_names<'a>(&self, names: impl Iterator<Item = &'a [u8]>) -> u64 {
        names.fold(ROOT, |parent, name| self.child(parent, name))
    }

    /// Notes that a name has no object any more.
    pub(crate) fn removed(&self, parent: u64, name: &[u8]) {
        let computed = self.computed(parent, name);
        let mut table = self.table();
        table.fresh += 1;
        let fresh = self.hasher.hash_one((0_u64, table.fresh)).max(ROOT + 1);
        table.exceptions.insert(computed, fresh);
    }

    /// Notes that a name is one of the object with this number.
    pub(crate) fn named(&self, parent: u64, name: &[u8], number: u64) {
        let computed = self.computed(parent, name);
        self.table().exceptions.insert(computed, number);
    }

    /// Notes that an object has another name.
    pub(crate) fn moved(&self, from: (u64, &[u8]), to: (u64, &[u8])) {
        let number = self.child(from.0, from.1);
        self.removed(from.0, from.1);
        self.named(to.0, to.1, number);
    }
}
