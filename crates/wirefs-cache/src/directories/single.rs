//! Names that are known singly, in directories that were not listed: no more of them than is of use.

use super::{Directory, DirectoryCache};
use crate::name_tree::TreeNodeId;
use std::sync::Arc;

impl DirectoryCache {
    /// So many of them may there be over all directories. One takes about 400 bytes.
    pub(super) fn singles_max(&self) -> usize {
        self.entries_max / 2
    }

    /// A name of the directory is about to be known, be it listed or not.
    pub(super) fn make_room(&mut self, dir: TreeNodeId) {
        if self.cached.get(&dir).is_some_and(|directory| directory.listed.is_some()) {
            return;
        }
        if self.singles >= self.singles_max() {
            self.cached.retain(|_, directory| directory.listed.is_some());
            self.singles = 0;
        }
        self.cached.entry(dir).or_insert_with(|| Directory::new(Arc::default(), None));
    }
}

impl Directory {
    /// How many there are in it.
    pub(super) fn single_count(&self) -> usize {
        if self.listed.is_none() { self.singles.len() } else { 0 }
    }
}

#[cfg(test)]
mod tests;
