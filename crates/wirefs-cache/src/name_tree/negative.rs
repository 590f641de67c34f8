//! Names of which the kernel was told for ever that they are not there: it must be told when they are.

use crate::name_tree::TreeNodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Such names in one directory, at most. Programs that search ask for a few hundred each.
const PER_DIRECTORY_MAX: usize = 4096;
/// Such names in all directories together, at most, unless it is said otherwise. One takes about 100 bytes.
const NEGATIVE_ENTRIES_MAX: usize = 131_072;

/// All such names.
#[derive(Debug)]
pub(super) struct NegativeEntries {
    by_directory: BTreeMap<TreeNodeId, BTreeSet<Vec<u8>>>,
    count: usize,
    max: usize,
}

impl Default for NegativeEntries {
    fn default() -> NegativeEntries {
        NegativeEntries { by_directory: BTreeMap::new(), count: 0, max: NEGATIVE_ENTRIES_MAX }
    }
}

impl NegativeEntries {
    /// No more than `max` from now on, where that is less.
    pub(super) fn limit(&mut self, max: usize) {
        self.max = max.min(NEGATIVE_ENTRIES_MAX);
    }

    /// False when that is too much to remember.
    pub(super) fn insert(&mut self, parent: TreeNodeId, name: &[u8]) -> bool {
        let names = self.by_directory.get(&parent);
        if names.is_some_and(|names| names.contains(name)) {
            return true;
        }
        if self.count >= self.max || names.is_some_and(|names| names.len() >= PER_DIRECTORY_MAX) {
            return false;
        }
        self.by_directory.entry(parent).or_default().insert(name.to_vec());
        self.count += 1;
        true
    }

    /// Whether it was told of.
    pub(super) fn remove(&mut self, parent: TreeNodeId, name: &[u8]) -> bool {
        let Some(names) = self.by_directory.get_mut(&parent) else { return false };
        let was_present = names.remove(name);
        if names.is_empty() {
            self.by_directory.remove(&parent);
        }
        self.count -= usize::from(was_present);
        was_present
    }

    /// All that were told of in one directory.
    pub(super) fn remove_all(&mut self, parent: TreeNodeId) -> BTreeSet<Vec<u8>> {
        let names = self.by_directory.remove(&parent).unwrap_or_default();
        self.count -= names.len();
        names
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
