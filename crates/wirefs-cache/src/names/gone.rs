//! Nodes that this client changed of late and that the kernel forgot since: replies that were asked for before the change
//! may still come, and must not make an older state known again.

use crate::names::Node;
use crate::trust::Known;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wirefs_op::{FileId, Stat, Time};

/// Nodes remembered so, at most. One takes about 250 bytes.
const GONE_MAX: usize = 16_384;
/// How long they are. INVARIANT: a reply to what was asked for before a change has come within this time, or its carrier is
/// lost.
const GONE_FOR: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Changed {
    stat: Stat,
    known: Option<Known>,
    changed_at: Time,
    effect_at: Time,
}

/// What is remembered of them.
#[derive(Debug, Default)]
pub(super) struct Gone {
    nodes: BTreeMap<FileId, Changed>,
    order: VecDeque<(Time, FileId)>,
    /// Some that were changed up to then are not remembered.
    incomplete_until: Time,
    /// What was known up to then is not believed.
    doubted_until: Time,
}

impl Gone {
    /// The node is about to be dropped.
    pub(super) fn note(&mut self, node: &Node) {
        if node.changed_at == Time(0) {
            return;
        }
        let Node { stat, known, changed_at, effect_at, .. } = *node;
        self.nodes.insert(stat.id, Changed { stat, known, changed_at, effect_at });
        self.order.push_back((changed_at, stat.id));
        if self.order.len() > GONE_MAX {
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
    pub(super) fn restore(&mut self, node: &mut Node) -> bool {
        let Some(at) = node.known.map(|known| known.at) else { return false };
        let Some(changed) = self.nodes.remove(&node.stat.id) else {
            let counts = at > self.incomplete_until || self.incomplete_until == Time(0);
            if !counts {
                node.known = None;
            }
            return counts;
        };
        (node.changed_at, node.effect_at) = (changed.changed_at, changed.effect_at);
        let counts = at >= changed.changed_at;
        if !counts {
            node.known = None;
            if node.stat.kind == changed.stat.kind {
                let known = changed.known.filter(|known| known.at > self.doubted_until);
                (node.stat, node.known) = (changed.stat, known);
            }
        }
        counts
    }

    /// The object's attributes are no longer believed.
    pub(super) fn doubt(&mut self, id: FileId) {
        if let Some(changed) = self.nodes.get_mut(&id) {
            changed.known = None;
        }
    }

    /// No object's attributes are, as far as they are known now.
    pub(super) fn doubt_all(&mut self, now: Time) {
        self.doubted_until = now;
    }

    /// When this client last changed the object, as far as that is remembered; of what is not, some later moment.
    pub(super) fn changed_at(&self, id: FileId) -> Time {
        self.nodes.get(&id).map_or(self.incomplete_until, |changed| changed.changed_at)
    }

    /// Lets time pass.
    pub(super) fn expire(&mut self, now: Time) {
        while self.order.front().is_some_and(|(at, _)| now >= *at + GONE_FOR) {
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
