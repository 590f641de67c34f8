//! Directories whose names are on the server's disk.

use crate::call::CallId;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_cache::TreeNodeId;
use wirefs_op::TreePath;

/// The maximum number of directories remembered as synced by programs.
pub(crate) const WANTED_MAX: usize = 64;

/// The maximum number of rollback journals whose names are remembered as changed.
pub(crate) const JOURNALS_MAX: usize = 16;

/// The progress of a directory's sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Current {
    /// The sync is in progress, by the request with this number.
    Asked(u64),
    /// The server's disk has the directory in its present state.
    Done,
}

/// The directories that were synced recently, or are being synced.
#[derive(Debug, Default)]
pub(crate) struct Synced {
    pub(crate) wanted: BTreeSet<TreeNodeId>,
    pub(crate) current: BTreeMap<TreeNodeId, Current>,
    /// The rollback journals that were created, changed or removed in these directories since, by path. The paths are
    /// valid, since no other name has changed.
    pub(crate) journals: BTreeMap<TreeNodeId, BTreeSet<TreePath>>,
    pub(crate) under_way: BTreeMap<u64, (TreeNodeId, Vec<CallId>)>,
    pub(crate) next: u64,
}

impl Synced {
    /// Notes that names or attributes have changed.
    pub(crate) fn forget(&mut self) {
        self.current.clear();
        self.journals.clear();
    }

    /// Notes that the rollback journal at this path was created, changed or removed.
    pub(crate) fn journal_changed(&mut self, path: &TreePath) {
        for dir in self.current.keys() {
            self.journals.entry(*dir).or_default().insert(path.clone());
        }
        if self.journals.values().any(|paths| paths.len() > JOURNALS_MAX) {
            self.forget();
        }
    }

    /// Returns the rollback journals of the directory at `path` that were changed since.
    pub(crate) fn journals_of(&self, dir: TreeNodeId, path: &TreePath) -> Vec<TreePath> {
        let is_in = |journal: &&TreePath| journal.split_last().is_none_or(|(parent, _)| parent == *path);
        self.journals
            .get(&dir)
            .into_iter()
            .flatten()
            .filter(|journal| is_in(journal) || *journal == path)
            .cloned()
            .collect()
    }

    pub(crate) fn want(&mut self, dir: TreeNodeId) {
        if self.wanted.len() >= WANTED_MAX && !self.wanted.contains(&dir) {
            self.wanted.clear();
        }
        self.wanted.insert(dir);
    }

    pub(crate) fn begins(&mut self, dir: TreeNodeId, call: Option<CallId>) -> u64 {
        self.next += 1;
        self.current.insert(dir, Current::Asked(self.next));
        self.journals.remove(&dir);
        self.under_way.insert(self.next, (dir, call.into_iter().collect()));
        self.next
    }

    /// Ends a sync. Returns the calls that waited for it.
    pub(crate) fn ended(&mut self, number: u64, is_done: bool) -> Vec<CallId> {
        let Some((dir, calls)) = self.under_way.remove(&number) else { return Vec::new() };
        if self.current.get(&dir) == Some(&Current::Asked(number)) {
            match is_done {
                true => self.current.insert(dir, Current::Done),
                false => self.current.remove(&dir),
            };
            if !is_done {
                self.journals.remove(&dir);
            }
        }
        calls
    }
}
