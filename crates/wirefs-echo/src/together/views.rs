//! Views: who is together, and how that changes.

use std::collections::{BTreeMap, BTreeSet};

use super::message::{Body, Stand, View};
use super::pen::{Pen, Work};
use super::{NODES_MAX, NodeId, Output, Together};

/// A view that this node would like to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) view: View,
    pub(super) members: BTreeSet<NodeId>,
    pub(super) agreed: BTreeMap<NodeId, Stand>,
}

impl Together {
    /// Nodes outside that want to be members.
    pub(super) fn joiners(&self) -> Vec<NodeId> {
        let outside = self.peers.iter().filter(|(id, peer)| peer.joins && !self.members.contains(id));
        let present = outside.filter(|(_, peer)| !self.is_silent(peer.heard));
        present.map(|(id, _)| *id).take(NODES_MAX.saturating_sub(self.members.len())).collect()
    }

    fn is_silent(&self, heard: wirefs_op::Time) -> bool {
        self.now.since(heard) > self.pulse.dead
    }

    /// Whom of these nothing was heard of for too long.
    fn silent_of(&self, nodes: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
        let silent = |id: &NodeId| {
            self.ended.contains(id) || self.peers.get(id).is_none_or(|peer| self.is_silent(peer.heard))
        };
        nodes.iter().copied().filter(|id| *id != self.me && silent(id)).collect()
    }

    /// The holder lets in who has all, and out who wants to go. True when a view is to begin.
    pub(super) fn begin_view_if_needed(&mut self) -> bool {
        let root = self.stand.root;
        let has_all =
            |id: &NodeId| self.peers.get(id).is_some_and(|peer| peer.has.is_some() && peer.has == root);
        let ready: Vec<NodeId> =
            self.joiners().into_iter().filter(|id| root.is_none() || has_all(id)).collect();
        let leaving = |id: &NodeId| self.peers.get(id).is_some_and(|peer| peer.leaves);
        let is_same = ready.is_empty() && !self.members.iter().any(leaving);
        if is_same || !self.silent_of(&self.members).is_empty() {
            return false;
        }
        let staying = self.members.iter().copied().filter(|id| !leaving(id));
        let members = staying.chain(ready).collect();
        self.propose(members);
        true
    }

    /// Proposes to leave out who is silent, where no one before this node can.
    pub(super) fn look_for_silence(&mut self) {
        let wanted = self.proposal.as_ref().map_or(&self.members, |proposal| &proposal.members);
        let mut living = self.living_of(wanted);
        if living != *wanted && !self.is_enough(&living) {
            // Whom the proposal leaves out may be back.
            living = self.living_of(&self.members);
        }
        let is_first = self.proposal.is_some() || living.first() == Some(&self.me);
        // A view that somebody promised and that does not begin: whoever proposed it may be gone.
        let (newest, since) = self.newest;
        let is_stuck =
            newest > self.view && self.proposal.is_none() && self.now.since(since) > self.pulse.dead;
        let is_refused = self.proposal.is_some() && self.promised < newest;
        let is_due = living != *wanted || is_stuck || is_refused;
        if self.is_member() && is_first && self.is_enough(&living) && is_due {
            self.propose(living);
        }
    }

    fn living_of(&self, nodes: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
        nodes.difference(&self.silent_of(nodes)).copied().collect()
    }

    /// Whether these may go on.
    fn is_enough(&self, living: &BTreeSet<NodeId>) -> bool {
        // More than half, so that no two parts go on; of two either, since else one that is left could not.
        let left = living.intersection(&self.members).count();
        // Whose life has ended goes on nowhere.
        let count = self.members.difference(&self.ended).count();
        left * 2 > count || self.members.len() == 2
    }

    /// Takes part in no view before this one any more.
    fn promise(&mut self, view: View) {
        self.promised = view;
        self.note_view(view);
    }

    pub(super) fn note_view(&mut self, view: View) {
        if view > self.newest.0 {
            self.newest = (view, self.now);
        }
    }

    fn propose(&mut self, members: BTreeSet<NodeId>) {
        let is_known = self.proposal.as_ref().is_some_and(|known| known.members == members);
        let is_refused = self.promised < self.newest.0;
        if !is_known || is_refused {
            let number = self.newest.0.number.max(self.promised.number).max(self.view.number) + 1;
            let view = View { number, by: self.me };
            self.promise(view);
            self.checking = None;
            let agreed = BTreeMap::from([(self.me, self.stand)]);
            self.proposal = Some(Proposal { view, members, agreed });
        }
        self.send_proposal();
        self.begin_if_agreed();
    }

    pub(super) fn send_proposal(&mut self) {
        let Some(Proposal { view, members, agreed }) = self.proposal.clone() else { return };
        for to in members.iter().filter(|id| !agreed.contains_key(id)) {
            self.send(*to, Body::Propose { view, members: members.clone() });
        }
    }

    /// Another one proposes a view.
    pub(super) fn proposed(&mut self, from: NodeId, view: View, members: &BTreeSet<NodeId>) {
        if view < self.promised || !members.contains(&self.me) || view <= self.view {
            return;
        }
        if view > self.promised {
            self.promise(view);
            self.proposal = None;
            self.checking = None;
        }
        let stand = self.stand;
        self.send(from, Body::Agree { view, stand });
    }

    pub(super) fn agreed(&mut self, from: NodeId, view: View, stand: Stand) {
        if let Some(proposal) = self.proposal.as_mut().filter(|proposal| proposal.view == view) {
            proposal.agreed.insert(from, stand);
            self.begin_if_agreed();
        }
    }

    fn begin_if_agreed(&mut self) {
        let is_agreed =
            |proposal: &mut Proposal| proposal.members.iter().all(|id| proposal.agreed.contains_key(id));
        let Some(Proposal { view, members, agreed }) = self.proposal.take_if(is_agreed) else { return };
        // The newest root that one of them has holds all that was answered; who has it can tell it.
        let standing = agreed.iter().filter(|(id, _)| members.contains(id));
        let newest = standing.max_by_key(|(id, stand)| (**stand, std::cmp::Reverse(**id)));
        if let Some((holder, _)) = newest {
            let holder = *holder;
            self.enter(view, members, holder, 0);
            self.beat();
        }
    }

    /// Goes over to a view that has begun.
    pub(super) fn enter(&mut self, view: View, members: BTreeSet<NodeId>, holder: NodeId, turn: u64) {
        let was_member = self.is_member();
        (self.view, self.members, self.turn, self.settled) = (view, members, turn, None);
        self.ended.retain(|id| self.members.contains(id));
        self.promised = self.promised.max(view);
        self.proposal = self.proposal.take().filter(|proposal| proposal.view > view);
        self.checking = None;
        self.asked.clear();
        self.is_own_turn = false;
        self.pen = if holder == self.me && self.is_member() && turn == 0 {
            self.stand.view = view;
            match self.stand.root {
                Some(_) => {
                    Pen::Held(Work::Settling { waits_for: BTreeSet::new(), made: None, freed: Vec::new() })
                }
                None => Pen::Held(Work::Idle),
            }
        } else {
            Pen::Elsewhere { holder }
        };
        if matches!(self.pen, Pen::Held(Work::Settling { .. })) {
            self.tell_root(None, Vec::new());
        }
        if was_member && !self.is_member() && self.leaves {
            self.outputs.push_back(Output::Left);
        }
    }
}

#[cfg(test)]
mod tests;
