//! News that are passed on with every packet, the least told first, until each was told often enough.

use crate::key::NodeKey;
use crate::limits::GOSSIP_MAX;
use std::collections::BTreeMap;

/// Each piece of news is told so often for each doubling of the nodes.
const TIMES_EACH: u32 = 4;

/// Which form a piece of news has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The node's word.
    Record,
    /// How the node is.
    Claim,
}

/// News on their way.
///
/// # Source
/// SWIM (Das, Gupta, Motivala, 2002), section 4.1: λ log n times each, the least told first.
#[derive(Debug, Default)]
pub(crate) struct Gossip {
    news: BTreeMap<NodeKey, (Form, u32)>,
}

impl Gossip {
    /// There is news of a node. What was on its way about it is out of date.
    pub(crate) fn add(&mut self, key: NodeKey, form: Form) {
        if self.news.len() < GOSSIP_MAX || self.news.contains_key(&key) {
            self.news.insert(key, (form, 0));
        }
    }

    pub(crate) fn forget(&mut self, key: &NodeKey) {
        self.news.remove(key);
    }

    /// What to tell, the least told first.
    pub(crate) fn next(&self) -> Vec<(NodeKey, Form)> {
        let mut news: Vec<_> = self.news.iter().map(|(key, (form, told))| (*told, *key, *form)).collect();
        news.sort_by_key(|(told, key, _)| (*told, *key));
        news.into_iter().map(|(_, key, form)| (key, form)).collect()
    }

    /// It was told once more, among so many nodes.
    pub(crate) fn told(&mut self, key: &NodeKey, nodes: usize) {
        let doublings = usize::BITS - nodes.saturating_add(1).leading_zeros();
        if let Some((_, told)) = self.news.get_mut(key) {
            *told += 1;
            if *told >= TIMES_EACH * doublings {
                self.news.remove(key);
            }
        }
    }
}
