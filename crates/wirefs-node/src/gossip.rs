//! Dissemination: recent updates piggybacked on every packet, the least often sent first, until each was sent often
//! enough.

use crate::key::NodeKey;
use crate::limits::GOSSIP_MAX;
use std::collections::BTreeMap;

/// Transmissions of an update for each doubling of the number of nodes.
const TIMES_EACH: u32 = 4;

/// The form in which an update is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    /// The node's record.
    Record,
    /// A claim about the node's state.
    Claim,
}

/// Updates being disseminated.
///
/// # Source
/// SWIM (Das, Gupta, Motivala, 2002), section 4.1: λ log n transmissions of each update, the least often sent first.
#[derive(Debug, Default)]
pub(crate) struct Gossip {
    updates: BTreeMap<NodeKey, (UpdateKind, u32)>,
}

impl Gossip {
    /// Queues an update of a node. It replaces an older one.
    pub(crate) fn add(&mut self, key: NodeKey, kind: UpdateKind) {
        if self.updates.len() < GOSSIP_MAX || self.updates.contains_key(&key) {
            self.updates.insert(key, (kind, 0));
        }
    }

    pub(crate) fn remove(&mut self, key: &NodeKey) {
        self.updates.remove(key);
    }

    /// Returns the updates to send, the least often sent first.
    pub(crate) fn next(&self) -> Vec<(NodeKey, UpdateKind)> {
        let mut updates: Vec<_> =
            self.updates.iter().map(|(key, (kind, sent))| (*sent, *key, *kind)).collect();
        updates.sort_by_key(|(sent, key, _)| (*sent, *key));
        updates.into_iter().map(|(_, key, kind)| (key, kind)).collect()
    }

    /// Counts a transmission of an update; drops it after enough of them for this number of nodes.
    pub(crate) fn record_send(&mut self, key: &NodeKey, nodes: usize) {
        let doublings = usize::BITS - nodes.saturating_add(1).leading_zeros();
        if let Some((_, sent)) = self.updates.get_mut(key) {
            *sent += 1;
            if *sent >= TIMES_EACH * doublings {
                self.updates.remove(key);
            }
        }
    }
}
