//! What is heard of others, and signs of life.

use std::collections::BTreeSet;

use wirefs_op::Time;

use super::message::{Body, Header, Message};
use super::pen::{Checking, Pen, Work};
use super::{NODES_MAX, NodeId, Output, Peer, Together};
use crate::block::BlockId;

impl Together {
    pub(super) fn tick(&mut self) {
        self.allow_for_own_pause();
        if self.now >= self.beat_at {
            self.beat();
        }
        if self.now >= self.retry_at {
            self.retry_at = self.now + self.pulse.retry;
            self.look_for_silence();
            self.send_proposal();
            self.retry();
        }
        if self.leaves && self.members.len() == 1 && self.is_member() && self.pending.is_none() {
            self.members.clear();
            self.outputs.push_back(Output::Left);
        }
    }

    /// A node that stood still has heard of nobody meanwhile, and that is not their silence.
    fn allow_for_own_pause(&mut self) {
        let now = self.now;
        if now.since(self.ticked) > self.pulse.dead / 2 {
            self.peers
                .values_mut()
                .filter(|peer| peer.heard > Time::default())
                .for_each(|peer| peer.heard = now);
        }
        self.ticked = now;
    }

    pub(super) fn beat(&mut self) {
        self.beat_at = self.now + self.pulse.beat;
        let all: Vec<NodeId> = self.peers.keys().copied().collect();
        all.into_iter().for_each(|to| self.send(to, Body::Alive));
    }

    /// Who has the key and was not named is one who came later.
    pub(super) fn met(&mut self, id: NodeId) {
        let is_new = id != self.me && !self.peers.contains_key(&id);
        if is_new && self.peers.len() + 1 < NODES_MAX {
            self.peers.insert(id, Peer::default());
            self.send(id, Body::Alive);
        }
    }

    pub(super) fn reborn(&mut self, id: NodeId) {
        if id != self.me && self.members.contains(&id) {
            self.ended.insert(id);
        }
    }

    pub(super) fn heard(&mut self, from: NodeId, message: Message) {
        let Message { header, body } = message;
        let now = self.now;
        self.met(from);
        self.note_life(from, &header);
        let is_ended = self.ended.contains(&from);
        let Some(peer) = self.peers.get_mut(&from).filter(|_| !is_ended) else { return };
        (peer.heard, peer.joins, peer.leaves, peer.room) = (now, header.joins, header.leaves, header.room);
        self.has_heard_of_members |= !header.members.is_empty();
        self.note_view(header.promised.max(header.view));
        self.follow(from, &header);
        match body {
            Body::Propose { view, members } => self.proposed(from, view, &members),
            Body::Agree { view, stand } => self.agreed(from, view, stand),
            // What follows counts in the view that it was said in.
            _ if header.view != self.view => {}
            Body::Alive => {}
            // Also where it is not here: it comes by.
            Body::Want => {
                self.asked.insert(from);
            }
            Body::Pass { root, asked } => self.passed(&header, root, asked),
            Body::Root { root, made, freed, latest } => {
                self.told_root(Checking { from, root, made, freed, latest, looks: 0 });
            }
            Body::Have { root } => self.has(from, root),
            Body::Lack { ids } => self.outputs.push_back(Output::Copy { to: from, ids }),
        }
    }

    /// Whether it is the life of a member that has agreed to the view: the end of a former one may be heard of late, and the view
    /// later than that of the present one.
    fn note_life(&mut self, from: NodeId, header: &Header) {
        if header.view == self.view && header.members.contains(&from) {
            self.ended.remove(&from);
        } else if header.joins && header.promised < self.view && self.members.contains(&from) {
            self.ended.insert(from);
        }
    }

    /// Follows what another knows of views and of the pen.
    fn follow(&mut self, from: NodeId, header: &Header) {
        if header.members.is_empty() || header.view < self.view {
            return;
        }
        if header.view > self.view {
            // To a view that it is in it has agreed, or it was in a former life.
            let is_of_this_life = header.view == self.promised || !header.members.contains(&self.me);
            if header.view >= self.promised && is_of_this_life {
                self.enter(header.view, header.members.clone(), header.holder, header.turn);
            }
            return;
        }
        if header.turn > self.turn && header.holder != self.me {
            self.turn = header.turn;
            self.is_elsewhere(header.holder);
        }
        let has_it =
            header.settled.is_some() && header.settled == self.stand.root && self.stand.view == self.view;
        if has_it && self.settled != header.settled {
            self.settled = header.settled;
            self.free();
        }
        let is_passed = matches!(self.pen, Pen::Passing { to, .. } if to == from);
        if is_passed && header.holds && header.turn == self.turn {
            self.is_elsewhere(from);
        }
    }

    fn is_elsewhere(&mut self, holder: NodeId) {
        self.asked.remove(&holder);
        self.pen = Pen::Elsewhere { holder };
    }

    fn passed(&mut self, header: &Header, root: Option<BlockId>, asked: BTreeSet<NodeId>) {
        let is_due = self.pen == Pen::Elsewhere { holder: self.me } && header.turn == self.turn;
        if (is_due || header.turn > self.turn) && root == self.stand.root && self.is_active() {
            self.turn = header.turn;
            self.pen = Pen::Held(if self.running.is_some() { Work::Running } else { Work::Idle });
            self.is_own_turn = true;
            self.asked.extend(asked);
            self.beat();
        }
    }

    fn has(&mut self, from: NodeId, root: BlockId) {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.has = Some(root);
        }
        if let Pen::Held(Work::Settling { waits_for, .. }) = &mut self.pen
            && self.stand.root == Some(root)
        {
            waits_for.remove(&from);
        }
    }
}
