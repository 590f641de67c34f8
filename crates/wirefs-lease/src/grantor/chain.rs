//! The versions that the server's own changes left behind, so that a watcher's report of them is recognised.
//!
//! A report says what changed and which version the object has when the watcher looks, which may be some changes later.
//! Own changes of one object are a chain as long as each found the version that the one before it left: then nobody else
//! changed the object in between. So a report is of own changes alone when its version is one of the chain, and its name
//! one that was changed within it.
//!
//! What somebody else changed before the chain, to a thing that the chain changes too, is taken for own. Of that, nobody
//! believes anything any more but who made the change, and that one sees in the version before its own change that
//! somebody came between.

use crate::limits::{OWN_AGE, OWN_CHANGES_MAX, OWN_OBJECTS_MAX};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use wirefs_op::{FileId, Time};

/// Own changes of one object, with nobody else's between them.
#[derive(Debug)]
struct Chain {
    /// The name that was changed in a directory, and the version left behind.
    links: VecDeque<(Option<Bytes>, u64)>,
    /// The versions before and after the last change.
    last: (Option<u64>, u64),
    at: Time,
}

/// Own changes of late, by object.
#[derive(Debug, Default)]
pub(super) struct Chains(BTreeMap<FileId, Chain>);

impl Chains {
    /// An own change was made. Without the version before it, it begins a chain.
    pub(super) fn add(
        &mut self,
        now: Time,
        id: FileId,
        name: Option<&Bytes>,
        before: Option<u64>,
        after: u64,
    ) {
        if self.0.len() >= OWN_OBJECTS_MAX && !self.0.contains_key(&id) {
            self.0.retain(|_, chain| now.since(chain.at) <= OWN_AGE);
            if self.0.len() >= OWN_OBJECTS_MAX {
                // Then reports of own changes count as others' for a while, and too much is recalled.
                self.0.clear();
            }
        }
        let last = (before, after);
        let chain = self.0.entry(id).or_insert_with(|| Chain { links: VecDeque::new(), last, at: now });
        // Two names that one change concerns come one after the other.
        let is_linked = before.is_some() && (chain.last == last || Some(chain.last.1) == before);
        if !is_linked || now.since(chain.at) > OWN_AGE {
            chain.links.clear();
        }
        if chain.links.len() >= OWN_CHANGES_MAX {
            chain.links.pop_front();
        }
        chain.links.push_back((name.cloned(), after));
        chain.last = last;
        chain.at = now;
    }

    /// Whether own changes alone led to this version, and one of them was of this name.
    pub(super) fn explain(&self, id: FileId, name: Option<&Bytes>, version: u64) -> bool {
        self.0.get(&id).is_some_and(|chain| {
            let has_version = chain.links.iter().any(|(_, after)| *after == version);
            has_version && chain.links.iter().any(|(changed, _)| changed.as_ref() == name)
        })
    }
}

#[cfg(test)]
mod tests;
