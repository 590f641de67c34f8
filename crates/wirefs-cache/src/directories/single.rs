//! Single names in directories without a listing, and their limit.

use super::{Directory, DirectoryCache};
use crate::name_tree::TreeNodeId;
use std::sync::Arc;

impl DirectoryCache {
    /// Returns the maximal number of single names over all directories, about 400 bytes each.
    pub(super) fn singles_max(&self) -> usize {
        self.entries_max / 2
    }

    /// Makes room for a single name, unless the directory has a listing.
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
    /// Returns the number of single names; 0 if the directory has a listing.
    pub(super) fn single_count(&self) -> usize {
        if self.listed.is_none() { self.singles.len() } else { 0 }
    }
}

#[cfg(test)]
mod tests;
