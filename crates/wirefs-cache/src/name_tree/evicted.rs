//! Nodes that this client changed of late and that the kernel forgot since: replies that were asked for before the change
//! may still come, and must not make an older state known again.

use crate::coherency::Freshness;
use crate::name_tree::TreeNode;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wirefs_op::{FileId, Stat, Time};

/// Nodes remembered so, at most. One takes about 250 bytes.
const EVICTED_MAX: usize = 16_384;
/// How long they are. INVARIANT: a reply to what was asked for before a change has come within this time, or its carrier is
/// lost.
const EVICTED_FOR: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Changed {
    stat: Stat,
    freshness: Option<Freshness>,
    changed_at: Time,
    effect_at: Time,
}

/// What is remembered of them.
#[derive(Debug, Default)]
pub(super) struct EvictedNodes {
    nodes: BTreeMap<FileId, Changed>,
    order: VecDeque<(Time, FileId)>,
    /// Some that were changed up to then are not remembered.
    incomplete_until: Time,
    /// What was known up to then is not believed.
    invalidated_until: Time,
}

impl EvictedNodes {
    /// The node is about to be dropped.
    pub(super) fn note(&mut self, node: &TreeNode) {
        if node.changed_at == Time(0) {
            return;
        }
        let TreeNode { stat, freshness, changed_at, effect_at, .. } = *node;
        self.nodes.insert(stat.id, Changed { stat, freshness, changed_at, effect_at });
        self.order.push_back((changed_at, stat.id));
        if self.order.len() > EVICTED_MAX {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some((at, id)) = self.order.pop_front()
            && self.nodes.get(&id).is_some_and(|changed| changed.changed_at == at)
        {
            self.nodes.remove(&id);
            self.incomplete_until = self.incomplete_until.max(at);
        }
    }

    /// A node is known anew: tells whether what is known of it is from after the own changes.
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

    /// The object's attributes are no longer believed.
    pub(super) fn invalidate(&mut self, id: FileId) {
        if let Some(changed) = self.nodes.get_mut(&id) {
            changed.freshness = None;
        }
    }

    /// No object's attributes are, as far as they are known now.
    pub(super) fn invalidate_all(&mut self, now: Time) {
        self.invalidated_until = now;
    }

    /// When this client last changed the object, as far as that is remembered; of what is not, some later moment.
    pub(super) fn changed_at(&self, id: FileId) -> Time {
        self.nodes.get(&id).map_or(self.incomplete_until, |changed| changed.changed_at)
    }

    /// Lets time pass.
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
