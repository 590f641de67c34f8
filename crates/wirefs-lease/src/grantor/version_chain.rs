//! The versions that the server's own changes left behind, so that a watcher's report of them is recognised.
//!
//! A report says what changed and which version the object has when the watcher looks, which may be some changes later.
//! Own changes of one object are a chain as far as each found the version that another left: then nobody else
//! changed the object in between. So a report is of own changes alone when its version is one of the chain, and its name
//! one that was changed within it.
//!
//! What somebody else changed before the chain, to a thing that the chain changes too, is taken for own. Of that, nobody
//! believes anything any more but who made the change, and that one sees in the version before its own change that
//! somebody came between.

use crate::limits::{OWN_AGE, OWN_CHANGES_MAX, OWN_OBJECTS_MAX};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wirefs_op::{FileId, Time};

/// An own change.
#[derive(Debug)]
struct OwnChange {
    /// The name that was changed in a directory.
    name: Option<Bytes>,
    /// The version that it found; `None`: not known.
    before: Option<u64>,
    /// The version that it left behind; `None`: the object is gone.
    after: Option<u64>,
    at: Time,
}

/// Own changes of late, by object, in the order in which they were told of, which need not be that in which they were made.
#[derive(Debug, Default)]
pub(super) struct VersionChains(BTreeMap<FileId, VecDeque<OwnChange>>);

impl VersionChains {
    /// An own change was made. Without the version before it, it explains itself alone.
    pub(super) fn add(
        &mut self,
        now: Time,
        id: FileId,
        name: Option<&Bytes>,
        before: Option<u64>,
        after: Option<u64>,
    ) {
        let is_late = |change: &OwnChange| now.since(change.at) <= OWN_AGE;
        if self.0.len() >= OWN_OBJECTS_MAX && !self.0.contains_key(&id) {
            self.0.retain(|_, changes| changes.back().is_some_and(is_late));
            if self.0.len() >= OWN_OBJECTS_MAX {
                // Then reports of own changes count as others' for a while, and too much is recalled.
                self.0.clear();
            }
        }
        let changes = self.0.entry(id).or_default();
        while changes.len() >= OWN_CHANGES_MAX || changes.front().is_some_and(|change| !is_late(change)) {
            changes.pop_front();
        }
        changes.push_back(OwnChange { name: name.cloned(), before, after, at: now });
    }

    /// Whether own changes alone led from before one of this name to this version, or from this version to after it.
    /// Without a version: whether an own change was the end of it.
    pub(super) fn explain(&self, id: FileId, name: Option<&Bytes>, version: Option<u64>) -> bool {
        let Some(changes) = self.0.get(&id) else { return false };
        let mut chain: BTreeSet<Option<u64>> =
            changes.iter().map(|change| change.after).filter(|after| *after == version).collect();
        let mut grows = !chain.is_empty();
        while grows {
            let known = chain.len();
            // The latest first: mostly they follow from each other.
            for OwnChange { before, after, .. } in
                changes.iter().rev().filter(|change| change.before.is_some())
            {
                if chain.contains(after) {
                    chain.insert(*before);
                } else if chain.contains(before) {
                    chain.insert(*after);
                }
            }
            grows = chain.len() > known;
        }
        changes.iter().any(|change| change.name.as_ref() == name && chain.contains(&change.after))
    }
}

#[cfg(test)]
mod tests;
