//! Changes that are answered and not confirmed, and the names that they are about.

use std::borrow::Borrow;
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
    /// The objects of those that are about attributes, likewise.
    objects: BTreeMap<NodeId, usize>,
}

impl AllUnconfirmed {
    pub(crate) fn insert(&mut self, number: u64, change: Unconfirmed) {
        for (dir, name) in &change.names {
            *self.names.entry(*dir).or_default().entry(name.clone()).or_default() += 1;
        }
        for node in objects(&change) {
            *self.objects.entry(*node).or_default() += 1;
        }
        self.changes.insert(number, change);
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Unconfirmed> {
        let change = self.changes.remove(&number)?;
        for (dir, name) in &change.names {
            let Some(names) = self.names.get_mut(dir) else { continue };
            count_down(names, name);
            if names.is_empty() {
                self.names.remove(dir);
            }
        }
        for node in objects(&change) {
            count_down(&mut self.objects, node);
        }
        Some(change)
    }

    /// What a change makes is known.
    pub(crate) fn made(&mut self, number: u64, made: Made) {
        if let Some(change) = self.changes.get_mut(&number) {
            change.makes = Some(made);
        }
    }

    /// Whether any is about this name in a directory, or about the directory's attributes, which say who gets to the name.
    pub(crate) fn is_about(&self, dir: NodeId, name: &[u8]) -> bool {
        self.objects.contains_key(&dir) || self.names.get(&dir).is_some_and(|names| names.contains_key(name))
    }
}

/// What a change is about that is about no name.
fn objects(change: &Unconfirmed) -> &[NodeId] {
    if change.names.is_empty() { &change.nodes } else { &[] }
}

fn count_down<K: Ord + Borrow<Q>, Q: Ord + ?Sized>(counts: &mut BTreeMap<K, usize>, key: &Q) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
