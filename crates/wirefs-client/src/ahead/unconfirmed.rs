//! Changes that are answered and not confirmed, and the names that they are about.

use std::collections::BTreeMap;
use wirefs_cache::NodeId;
use wirefs_op::TreePath;

/// A change that is answered and not confirmed.
#[derive(Clone, Debug)]
pub(crate) struct Unconfirmed {
    /// The objects that it changes; each is held, and being written.
    pub(crate) nodes: Vec<NodeId>,
    /// The names that it changes.
    pub(crate) names: Vec<(NodeId, Vec<u8>)>,
    /// What it makes.
    pub(crate) makes: Option<Made>,
    pub(crate) path: TreePath,
    pub(crate) what: &'static str,
}

/// An object that the server does not have yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) node: NodeId,
    /// The open file that made it, which gets the server's fd.
    pub(crate) handle: Option<crate::call::Handle>,
}

/// All of them, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct AllUnconfirmed {
    changes: BTreeMap<u64, Unconfirmed>,
    /// The names in them, by directory, and how many of them each is in.
    names: BTreeMap<NodeId, BTreeMap<Vec<u8>, usize>>,
}

impl AllUnconfirmed {
    pub(crate) fn insert(&mut self, number: u64, change: Unconfirmed) {
        for (dir, name) in &change.names {
            *self.names.entry(*dir).or_default().entry(name.clone()).or_default() += 1;
        }
        self.changes.insert(number, change);
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Unconfirmed> {
        let change = self.changes.remove(&number)?;
        for (dir, name) in &change.names {
            let Some(names) = self.names.get_mut(dir) else { continue };
            if let Some(count) = names.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    names.remove(name);
                }
            }
            if names.is_empty() {
                self.names.remove(dir);
            }
        }
        Some(change)
    }

    /// What a change makes is known.
    pub(crate) fn made(&mut self, number: u64, made: Made) {
        if let Some(change) = self.changes.get_mut(&number) {
            change.makes = Some(made);
        }
    }

    /// Whether any is about this name.
    pub(crate) fn is_about(&self, dir: NodeId, name: &[u8]) -> bool {
        self.names.get(&dir).is_some_and(|names| names.contains_key(name))
    }
}
