//! Versions left by the server's own changes, to recognize a watcher's reports of them.
//!
//! A report names an object and its version at the time of the report, possibly several changes later. Own
//! changes of one object form a chain as long as each started from the version that another left: no other
//! program changed the object in between. A report is attributed to own changes if its version is in the
//! chain and its name was changed within it.
//!
//! An external change before the chain, to a name or object that the chain changes too, is attributed to the
//! own changes. This is safe. All other holders have lost their leases on it, and the requester sees in the
//! version before its change that another program intervened.

use crate::limits::{OWN_AGE, OWN_CHANGES_MAX, OWN_OBJECTS_MAX};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wirefs_op::{FileId, Time};

/// One own change.
#[derive(Debug)]
struct OwnChange {
    /// The changed name in a directory.
    name: Option<Bytes>,
    /// The version before the change; `None`: unknown.
    before: Option<u64>,
    /// The version after the change; `None`: the object is gone.
    after: Option<u64>,
    at: Time,
}

/// Recent own changes by object, in the order of their reports, which may differ from the order of execution.
#[derive(Debug, Default)]
pub(super) struct VersionChains(BTreeMap<FileId, VecDeque<OwnChange>>);

impl VersionChains {
    /// Records an own change. Without the version before it, the change is a chain of its own.
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
                // For a while, reports of own changes then count as external, and some recalls are
                // superfluous.
                self.0.clear();
            }
        }
        let changes = self.0.entry(id).or_default();
        while changes.len() >= OWN_CHANGES_MAX || changes.front().is_some_and(|change| !is_late(change)) {
            changes.pop_front();
        }
        changes.push_back(OwnChange { name: name.cloned(), before, after, at: now });
    }

    /// Returns true if own changes alone lead from a change of this name to this version, or from this
    /// version to such a change. Without a version: if an own change removed the object.
    pub(super) fn explain(&self, id: FileId, name: Option<&Bytes>, version: Option<u64>) -> bool {
        let Some(changes) = self.0.get(&id) else { return false };
        let mut chain: BTreeSet<Option<u64>> =
            changes.iter().map(|change| change.after).filter(|after| *after == version).collect();
        let mut grows = !chain.is_empty();
        while grows {
            let size = chain.len();
            // Newest first, since most changes follow from each other.
            for OwnChange { before, after, .. } in
                changes.iter().rev().filter(|change| change.before.is_some())
            {
                if chain.contains(after) {
                    chain.insert(*before);
                } else if chain.contains(before) {
                    chain.insert(*after);
                }
            }
            grows = chain.len() > size;
        }
        changes.iter().any(|change| change.name.as_ref() == name && chain.contains(&change.after))
    }
}

#[cfg(test)]
mod tests;
