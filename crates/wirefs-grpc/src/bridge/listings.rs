//! Unfinished listings of one session.

use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_op::{DirEntry, FileId};

/// The listings that are kept at a time, at most.
const LISTINGS_MAX: usize = 8;

/// Listings that are kept while their directory is listed in several requests, by the identity of the directory: an
/// inode number alone may be another object's by now.
#[derive(Debug, Default)]
pub(super) struct Listings {
    kept: BTreeMap<FileId, Arc<Vec<DirEntry>>>,
}

impl Listings {
    /// Returns the unfinished listing of a directory.
    pub(super) fn of(&self, directory: FileId) -> Option<Arc<Vec<DirEntry>>> {
        self.kept.get(&directory).cloned()
    }

    /// Keeps a listing until it ends. Another one gives way if there are too many: it is read anew.
    pub(super) fn keep(&mut self, directory: FileId, entries: &Arc<Vec<DirEntry>>) {
        if self.kept.len() >= LISTINGS_MAX && !self.kept.contains_key(&directory) {
            self.kept.pop_first();
        }
        self.kept.insert(directory, Arc::clone(entries));
    }

    /// Ends the listing of a directory.
    pub(super) fn end(&mut self, directory: FileId) {
        self.kept.remove(&directory);
    }
}

#[cfg(test)]
mod tests;
