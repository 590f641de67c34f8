//! Heartbeats, and the dispatch of messages.

use std::collections::BTreeSet;

use wirefs_op::Time;

use super::message::{MessageBody, MessageHeader, ReplicationMessage};
use super::write_token::{Checking, HolderWork, WriteToken};
use super::{Peer, REPLICAS_MAX, Replica, ReplicaId, ReplicaOutput};
use crate::block::EchoBlockId;

impl Replica {
    pub(super) fn tick(&mut self) {
        self.reset_timeouts_after_stall();
        if self.now >= self.heartbeat_at {
            self.send_heartbeats();
        }
        if self.now >= self.retry_at {
            self.retry_at = self.now + self.timers.retry;
            self.propose_without_dead();
            self.send_proposal();
            self.retry();
        }
        if self.is_leaving && self.members.len() == 1 && self.is_member() && self.uncommitted_root.is_none() {
            self.members.clear();
            self.outputs.push_back(ReplicaOutput::Left);
        }
    }

    /// A node that was paused received nothing meanwhile, which says nothing about the others.
    fn reset_timeouts_after_stall(&mut self) {
        let now = self.now;
        if now.since(self.last_tick) > self.timers.dead_after / 2 {
            self.peers
                .values_mut()
                .filter(|peer| peer.last_received > Time::default())
                .for_each(|peer| peer.last_received = now);
        }
        self.last_tick = now;
    }

    pub(super) fn send_heartbeats(&mut self) {
        self.heartbeat_at = self.now + self.timers.heartbeat;
        let all: Vec<ReplicaId> = self.peers.keys().copied().collect();
        all.into_iter().for_each(|to| self.send(to, MessageBody::Heartbeat));
    }

    /// A node with the key that was not configured joined later.
    pub(super) fn add_peer(&mut self, id: ReplicaId) {
        let is_new = id != self.id && !self.peers.contains_key(&id);
        if is_new && self.peers.len() + 1 < REPLICAS_MAX {
            self.peers.insert(id, Peer::default());
            self.send(id, MessageBody::Heartbeat);
        }
    }

    pub(super) fn peer_restarted(&mut self, id: ReplicaId) {
        if id != self.id && self.members.contains(&id) {
            self.restarted.insert(id);
        }
    }

    pub(super) fn receive(&mut self, from: ReplicaId, message: ReplicationMessage) {
        let ReplicationMessage { header, body } = message;
        let now = self.now;
        self.add_peer(from);
        self.note_restart(from, &header);
        let was_restarted = self.restarted.contains(&from);
        let Some(peer) = self.peers.get_mut(&from).filter(|_| !was_restarted) else { return };
        (peer.last_received, peer.wants_to_join, peer.wants_to_leave, peer.free_blocks) =
            (now, header.wants_to_join, header.wants_to_leave, header.free_blocks);
        self.knows_members |= !header.members.is_empty();
        self.note_view(header.prepared_view.max(header.view));
        self.follow_header(from, &header);
        match body {
            MessageBody::ProposeView { view, members } => self.view_proposed(from, view, &members),
            MessageBody::AcceptView { view, accepted } => self.view_accepted(from, view, accepted),
            // The remaining messages count only in the view in which they were sent.
            _ if header.view != self.view => {}
            MessageBody::Heartbeat => {}
            // Also if the token is not here: it passes this node in turn.
            MessageBody::RequestToken => {
                self.requests.insert(from);
            }
            MessageBody::TransferToken { root, requests } => self.token_received(&header, root, requests),
            MessageBody::PrepareRoot { root, new_blocks, freed, latest } => {
                self.root_received(Checking { from, root, new_blocks, freed, latest, checks: 0 });
            }
            MessageBody::AcceptRoot { root } => self.root_accepted(from, root),
            MessageBody::RequestBlocks { ids } => {
                self.outputs.push_back(ReplicaOutput::CopyBlocks { to: from, ids })
            }
        }
    }

    /// Notes whether the sender is the instance of a member that accepted the view. The end of a former
    /// instance may be reported late, and the view later than that of the present instance.
    fn note_restart(&mut self, from: ReplicaId, header: &MessageHeader) {
        if header.view == self.view && header.members.contains(&from) {
            self.restarted.remove(&from);
        } else if header.wants_to_join && header.prepared_view < self.view && self.members.contains(&from) {
            self.restarted.insert(from);
        }
    }

    /// Takes over a newer view, token epoch or committed root of another node.
    fn follow_header(&mut self, from: ReplicaId, header: &MessageHeader) {
        if header.members.is_empty() || header.view < self.view {
            return;
        }
        if header.view > self.view {
            // A view that lists this node was accepted by it, or by a former instance of it.
            let is_same_instance = header.view == self.prepared_view || !header.members.contains(&self.id);
            if header.view >= self.prepared_view && is_same_instance {
                self.enter_view(header.view, header.members.clone(), header.holder, header.token_epoch);
            }
            return;
        }
        if header.token_epoch > self.token_epoch && header.holder != self.id {
            self.token_epoch = header.token_epoch;
            self.set_holder(header.holder);
        }
        let has_it = header.committed_root.is_some()
            && header.committed_root == self.accepted.root
            && self.accepted.view == self.view;
        if has_it && self.committed_root != header.committed_root {
            self.committed_root = header.committed_root;
            self.free_replaced_blocks();
        }
        let is_passed = matches!(self.token, WriteToken::InTransit { to, .. } if to == from);
        if is_passed && header.holds_token && header.token_epoch == self.token_epoch {
            self.set_holder(from);
        }
    }

    fn set_holder(&mut self, holder: ReplicaId) {
        self.requests.remove(&holder);
        self.token = WriteToken::Elsewhere { holder };
    }

    fn token_received(
        &mut self,
        header: &MessageHeader,
        root: Option<EchoBlockId>,
        requests: BTreeSet<ReplicaId>,
    ) {
        let is_due =
            self.token == WriteToken::Elsewhere { holder: self.id } && header.token_epoch == self.token_epoch;
        if (is_due || header.token_epoch > self.token_epoch) && root == self.accepted.root && self.is_active()
        {
            self.token_epoch = header.token_epoch;
            self.token =
                WriteToken::Held(if self.running.is_some() { HolderWork::Running } else { HolderWork::Idle });
            self.own_change_first = true;
            self.requests.extend(requests);
            self.send_heartbeats();
        }
    }

    fn root_accepted(&mut self, from: ReplicaId, root: EchoBlockId) {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.accepted_root = Some(root);
        }
        if let WriteToken::Held(HolderWork::Committing { awaiting, .. }) = &mut self.token
            && self.accepted.root == Some(root)
        {
            awaiting.remove(&from);
        }
    }
}
