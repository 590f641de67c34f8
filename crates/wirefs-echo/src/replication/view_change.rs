//! View changes: members join, leave, and time out.

use std::collections::{BTreeMap, BTreeSet};

use super::message::{AcceptedState, MessageBody, ViewId};
use super::write_token::{HolderWork, WriteToken};
use super::{REPLICAS_MAX, Replica, ReplicaId, ReplicaOutput};

/// A view proposed by this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) view: ViewId,
    pub(super) members: BTreeSet<ReplicaId>,
    pub(super) accepted_by: BTreeMap<ReplicaId, AcceptedState>,
}

impl Replica {
    /// Returns the nodes that want to become members.
    pub(super) fn joiners(&self) -> Vec<ReplicaId> {
        let outside = self.peers.iter().filter(|(id, peer)| peer.wants_to_join && !self.members.contains(id));
        let present = outside.filter(|(_, peer)| !self.is_timed_out(peer.last_received));
        present.map(|(id, _)| *id).take(REPLICAS_MAX.saturating_sub(self.members.len())).collect()
    }

    fn is_timed_out(&self, last_received: wirefs_op::Time) -> bool {
        self.now.since(last_received) > self.timers.dead_after
    }

    /// Returns the nodes of this set that are restarted or timed out.
    fn timed_out_of(&self, nodes: &BTreeSet<ReplicaId>) -> BTreeSet<ReplicaId> {
        let silent = |id: &ReplicaId| {
            self.restarted.contains(id)
                || self.peers.get(id).is_none_or(|peer| self.is_timed_out(peer.last_received))
        };
        nodes.iter().copied().filter(|id| *id != self.id && silent(id)).collect()
    }

    /// The holder adds joining nodes that have all blocks, and removes leaving ones. Returns whether it
    /// proposed a view.
    pub(super) fn change_members_if_needed(&mut self) -> bool {
        let root = self.accepted.root;
        let has_all = |id: &ReplicaId| {
            self.peers.get(id).is_some_and(|peer| peer.accepted_root.is_some() && peer.accepted_root == root)
        };
        let ready: Vec<ReplicaId> =
            self.joiners().into_iter().filter(|id| root.is_none() || has_all(id)).collect();
        let leaving = |id: &ReplicaId| self.peers.get(id).is_some_and(|peer| peer.wants_to_leave);
        let is_same = ready.is_empty() && !self.members.iter().any(leaving);
        if is_same || !self.timed_out_of(&self.members).is_empty() {
            return false;
        }
        let staying = self.members.iter().copied().filter(|id| !leaving(id));
        let members = staying.chain(ready).collect();
        self.propose(members);
        true
    }

    /// Proposes a view without the silent members, if no member with a lower number can.
    pub(super) fn propose_without_dead(&mut self) {
        let wanted = self.proposal.as_ref().map_or(&self.members, |proposal| &proposal.members);
        let mut live = self.live_of(wanted);
        if live != *wanted && !self.has_quorum(&live) {
            // Members that the proposal left out may be back.
            live = self.live_of(&self.members);
        }
        let is_first = self.proposal.is_some() || live.first() == Some(&self.id);
        // A view that some node prepared for does not begin: its proposer may be dead.
        let (newest, since) = self.newest;
        let is_stuck =
            newest > self.view && self.proposal.is_none() && self.now.since(since) > self.timers.dead_after;
        let is_refused = self.proposal.is_some() && self.prepared_view < newest;
        let is_due = live != *wanted || is_stuck || is_refused;
        if self.is_member() && is_first && self.has_quorum(&live) && is_due {
            self.propose(live);
        }
    }

    fn live_of(&self, nodes: &BTreeSet<ReplicaId>) -> BTreeSet<ReplicaId> {
        nodes.difference(&self.timed_out_of(nodes)).copied().collect()
    }

    /// Returns whether these members may continue.
    fn has_quorum(&self, live: &BTreeSet<ReplicaId>) -> bool {
        // More than half, so that no two partitions continue; any one of two members, since the other could
        // not continue alone.
        let left = live.intersection(&self.members).count();
        // A former instance continues nowhere.
        let count = self.members.difference(&self.restarted).count();
        left * 2 > count || self.members.len() == 2
    }

    /// Stops taking part in lower views.
    fn prepare_view(&mut self, view: ViewId) {
        self.prepared_view = view;
        self.note_view(view);
    }

    pub(super) fn note_view(&mut self, view: ViewId) {
        if view > self.newest.0 {
            self.newest = (view, self.now);
        }
    }

    fn propose(&mut self, members: BTreeSet<ReplicaId>) {
        let is_known = self.proposal.as_ref().is_some_and(|known| known.members == members);
        let is_refused = self.prepared_view < self.newest.0;
        if !is_known || is_refused {
            let number = self.newest.0.number.max(self.prepared_view.number).max(self.view.number) + 1;
            let view = ViewId { number, proposer: self.id };
            self.prepare_view(view);
            self.checking = None;
            let accepted_by = BTreeMap::from([(self.id, self.accepted)]);
            self.proposal = Some(Proposal { view, members, accepted_by });
        }
        self.send_proposal();
        self.enter_if_accepted();
    }

    pub(super) fn send_proposal(&mut self) {
        let Some(Proposal { view, members, accepted_by }) = self.proposal.clone() else { return };
        for to in members.iter().filter(|id| !accepted_by.contains_key(id)) {
            self.send(*to, MessageBody::ProposeView { view, members: members.clone() });
        }
    }

    /// Another node proposed a view.
    pub(super) fn view_proposed(&mut self, from: ReplicaId, view: ViewId, members: &BTreeSet<ReplicaId>) {
        if view < self.prepared_view || !members.contains(&self.id) || view <= self.view {
            return;
        }
        if view > self.prepared_view {
            self.prepare_view(view);
            self.proposal = None;
            self.checking = None;
        }
        let accepted = self.accepted;
        self.send(from, MessageBody::AcceptView { view, accepted });
    }

    pub(super) fn view_accepted(&mut self, from: ReplicaId, view: ViewId, accepted: AcceptedState) {
        if let Some(proposal) = self.proposal.as_mut().filter(|proposal| proposal.view == view) {
            proposal.accepted_by.insert(from, accepted);
            self.enter_if_accepted();
        }
    }

    fn enter_if_accepted(&mut self) {
        let is_accepted =
            |proposal: &mut Proposal| proposal.members.iter().all(|id| proposal.accepted_by.contains_key(id));
        let Some(Proposal { view, members, accepted_by }) = self.proposal.take_if(is_accepted) else {
            return;
        };
        // The newest accepted root contains all answered changes. A node that has it becomes the holder.
        let standing = accepted_by.iter().filter(|(id, _)| members.contains(id));
        let newest = standing.max_by_key(|(id, accepted)| (**accepted, std::cmp::Reverse(**id)));
        if let Some((holder, _)) = newest {
            let holder = *holder;
            self.enter_view(view, members, holder, 0);
            self.send_heartbeats();
        }
    }

    /// Switches to a view that has begun.
    pub(super) fn enter_view(
        &mut self,
        view: ViewId,
        members: BTreeSet<ReplicaId>,
        holder: ReplicaId,
        token_epoch: u64,
    ) {
        let was_member = self.is_member();
        (self.view, self.members, self.token_epoch, self.committed_root) = (view, members, token_epoch, None);
        self.restarted.retain(|id| self.members.contains(id));
        self.prepared_view = self.prepared_view.max(view);
        self.proposal = self.proposal.take().filter(|proposal| proposal.view > view);
        self.checking = None;
        self.requests.clear();
        self.own_change_first = false;
        self.token = if holder == self.id && self.is_member() && token_epoch == 0 {
            self.accepted.view = view;
            match self.accepted.root {
                Some(_) => WriteToken::Held(HolderWork::Committing {
                    awaiting: BTreeSet::new(),
                    new_blocks: None,
                    freed: Vec::new(),
                }),
                None => WriteToken::Held(HolderWork::Idle),
            }
        } else {
            WriteToken::Elsewhere { holder }
        };
        if matches!(self.token, WriteToken::Held(HolderWork::Committing { .. })) {
            self.prepare_root(None, Vec::new());
        }
        if was_member && !self.is_member() && self.is_leaving {
            self.outputs.push_back(ReplicaOutput::Left);
        }
    }
}

#[cfg(test)]
mod tests;
