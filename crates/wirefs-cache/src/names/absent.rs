//! Names of which the kernel was told for ever that they are not there: it must be told when they are.

use crate::names::TreeNodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Such names in one directory, at most. Programs that search ask for a few hundred each.
const IN_ONE_MAX: usize = 4096;
/// Such names in all directories together, at most, unless it is said otherwise. One takes about 100 bytes.
const IN_ALL_MAX: usize = 131_072;

/// All such names.
#[derive(Debug)]
pub(super) struct Absent {
    by_directory: BTreeMap<TreeNodeId, BTreeSet<Vec<u8>>>,
    count: usize,
    most: usize,
}

impl Default for Absent {
    fn default() -> Absent {
        Absent { by_directory: BTreeMap::new(), count: 0, most: IN_ALL_MAX }
    }
}

impl Absent {
    /// No more than `most` from now on, where that is less.
    pub(super) fn bound(&mut self, most: usize) {
        self.most = most.min(IN_ALL_MAX);
    }

    /// False when that is too much to remember.
    pub(super) fn tell(&mut self, parent: TreeNodeId, name: &[u8]) -> bool {
        let told = self.by_directory.get(&parent);
        if told.is_some_and(|told| told.contains(name)) {
            return true;
        }
        if self.count >= self.most || told.is_some_and(|told| told.len() >= IN_ONE_MAX) {
            return false;
        }
        self.by_directory.entry(parent).or_default().insert(name.to_vec());
        self.count += 1;
        true
    }

    /// Whether it was told of.
    pub(super) fn untell(&mut self, parent: TreeNodeId, name: &[u8]) -> bool {
        let Some(told) = self.by_directory.get_mut(&parent) else { return false };
        let was_told = told.remove(name);
        if told.is_empty() {
            self.by_directory.remove(&parent);
        }
        self.count -= usize::from(was_told);
        was_told
    }

    /// All that were told of in one directory.
    pub(super) fn untell_all(&mut self, parent: TreeNodeId) -> BTreeSet<Vec<u8>> {
        let told = self.by_directory.remove(&parent).unwrap_or_default();
        self.count -= told.len();
        told
    }

    /// How many names.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn directories(&self) -> Vec<TreeNodeId> {
        self.by_directory.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests;
