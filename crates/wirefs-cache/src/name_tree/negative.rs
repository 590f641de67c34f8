//! Negative entries that the kernel caches without a timeout: the client must invalidate them when the name
//! is created.

use crate::name_tree::TreeNodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The maximal number per directory. Programs that search for files need a few hundred each.
const PER_DIRECTORY_MAX: usize = 4096;
/// The default limit over all directories, about 100 bytes each.
const NEGATIVE_ENTRIES_MAX: usize = 131_072;

/// The negative entries of all directories.
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
    /// Sets the limit over all directories, at most the default.
    pub(super) fn limit(&mut self, max: usize) {
        self.max = max.min(NEGATIVE_ENTRIES_MAX);
    }

    /// Inserts a name. Returns false if a limit is reached.
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

    /// Removes a name. Returns true if it was present.
    pub(super) fn remove(&mut self, parent: TreeNodeId, name: &[u8]) -> bool {
        let Some(names) = self.by_directory.get_mut(&parent) else { return false };
        let was_present = names.remove(name);
        if names.is_empty() {
            self.by_directory.remove(&parent);
        }
        self.count -= usize::from(was_present);
        was_present
    }

    /// Removes and returns all names of a directory.
    pub(super) fn remove_all(&mut self, parent: TreeNodeId) -> BTreeSet<Vec<u8>> {
        let names = self.by_directory.remove(&parent).unwrap_or_default();
        self.count -= names.len();
        names
    }

    /// Returns the number of names.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn directories(&self) -> Vec<TreeNodeId> {
        self.by_directory.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests;
