//! Changes that are answered and not confirmed.

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
pub(crate) struct AllUnconfirmed(BTreeMap<u64, Unconfirmed>);

impl AllUnconfirmed {
    pub(crate) fn insert(&mut self, number: u64, change: Unconfirmed) {
        self.0.insert(number, change);
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Unconfirmed> {
        self.0.remove(&number)
    }

    /// What a change makes is known.
    pub(crate) fn made(&mut self, number: u64, made: Made) {
        if let Some(change) = self.0.get_mut(&number) {
            change.makes = Some(made);
        }
    }
}
