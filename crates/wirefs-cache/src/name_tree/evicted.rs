//! Records of own changes to evicted nodes. A reply to a request sent before the change may still arrive, and
//! must not restore an older state.

use crate::coherency::Freshness;
use crate::name_tree::TreeNode;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wirefs_op::{FileId, Stat, Time};

/// The maximal number of records, about 250 bytes each.
const EVICTED_MAX: usize = 16_384;
/// The lifetime of a record. INVARIANT: a reply to a request sent before a change arrives within this
/// time, or its carrier is lost.
const EVICTED_FOR: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Changed {
    stat: Stat,
    freshness: Option<Freshness>,
    changed_at: Time,
    effect_at: Time,
}

/// The records.
#[derive(Debug, Default)]
pub(super) struct EvictedNodes {
    nodes: BTreeMap<FileId, Changed>,
    order: VecDeque<(Time, FileId)>,
    /// Some nodes changed up to this time have no record.
    incomplete_until: Time,
    /// Attributes from up to this time are invalid.
    invalidated_until: Time,
}

impl EvictedNodes {
    /// Records a node that is about to be evicted.
    pub(super) fn note(&mut self, node: &TreeNode) {
        if node.changed_at == Time(0) {
            return;
        }
        let TreeNode { stat, freshness, changed_at, effect_at, .. } = *node;
        self.nodes.insert(stat.id, Changed { stat, freshness, changed_at, effect_at });
        self.order.push_back((changed_at, stat.id));
        if self.order.len() > EVICTED_MAX {
            self.remove_oldest();
        }
    }

    fn remove_oldest(&mut self) {
        if let Some((at, id)) = self.order.pop_front()
            && self.nodes.get(&id).is_some_and(|changed| changed.changed_at == at)
        {
            self.nodes.remove(&id);
            self.incomplete_until = self.incomplete_until.max(at);
        }
    }

    /// Applies the record to a node that is created again. Returns true if the node's attributes are newer
    /// than the own changes.
    pub(super) fn restore(&mut self, node: &mut TreeNode) -> bool {
        let Some(at) = node.freshness.map(|freshness| freshness.at) else { return false };
        let Some(changed) = self.nodes.remove(&node.stat.id) else {
            let counts = at > self.incomplete_until || self.incomplete_until == Time(0);
            if !counts {
                node.freshness = None;
            }
            return counts;
        };
        (node.changed_at, node.effect_at) = (changed.changed_at, changed.effect_at);
        let counts = at >= changed.changed_at;
        if !counts {
            node.freshness = None;
            if node.stat.kind == changed.stat.kind {
                let freshness = changed.freshness.filter(|freshness| freshness.at > self.invalidated_until);
                (node.stat, node.freshness) = (changed.stat, freshness);
            }
        }
        counts
    }

    /// Invalidates the recorded attributes of an object.
    pub(super) fn invalidate(&mut self, id: FileId) {
        if let Some(changed) = self.nodes.get_mut(&id) {
            changed.freshness = None;
        }
    }

    /// Invalidates all recorded attributes up to `now`.
    pub(super) fn invalidate_all(&mut self, now: Time) {
        self.invalidated_until = now;
    }

    /// Returns the time of the last own change of the object; without a record, an upper bound.
    pub(super) fn changed_at(&self, id: FileId) -> Time {
        self.nodes.get(&id).map_or(self.incomplete_until, |changed| changed.changed_at)
    }

    /// Removes records that are no longer needed.
    pub(super) fn expire(&mut self, now: Time) {
        while self.order.front().is_some_and(|(at, _)| now >= *at + EVICTED_FOR) {
            if let Some((at, id)) = self.order.pop_front()
                && self.nodes.get(&id).is_some_and(|changed| changed.changed_at == at)
            {
                self.nodes.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
