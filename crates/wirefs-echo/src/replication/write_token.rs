//! The write token: creating a root and replicating it to all members.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Bound;

use super::message::{Latest, MessageBody};
use super::{NewRoot, Replica, ReplicaId, ReplicaOutput};
use crate::block::EchoBlockId;

/// The location of the write token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WriteToken {
    Held(HolderWork),
    /// In transit; no node creates roots meanwhile.
    InTransit {
        to: ReplicaId,
        /// The other nodes that requested the token, this one among them if it did. Later requests wait here.
        requests: BTreeSet<ReplicaId>,
    },
    Elsewhere {
        holder: ReplicaId,
    },
}

/// The activity of the holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HolderWork {
    Idle,
    Running,
    /// Waits until these members accepted the root.
    Committing {
        awaiting: BTreeSet<ReplicaId>,
        new_blocks: Option<Vec<EchoBlockId>>,
        freed: Vec<EchoBlockId>,
    },
}

/// A received root, until all its blocks are here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checking {
    pub(super) from: ReplicaId,
    pub(super) root: EchoBlockId,
    pub(super) new_blocks: Option<Vec<EchoBlockId>>,
    pub(super) freed: Vec<EchoBlockId>,
    pub(super) latest: Latest,
    /// Number of checks. Blocks still missing at the second check do not arrive unrequested.
    pub(super) checks: u32,
}

impl Replica {
    /// Performs the next possible steps.
    pub(super) fn advance(&mut self) {
        if !self.is_active() {
            return;
        }
        if let WriteToken::Elsewhere { holder } = self.token
            && self.wants_write
            && self.requested_in != (self.view, self.token_epoch)
        {
            self.requested_in = (self.view, self.token_epoch);
            self.send(holder, MessageBody::RequestToken);
        }
        if let WriteToken::Held(HolderWork::Committing { awaiting, .. }) = &self.token
            && awaiting.is_empty()
        {
            self.token = WriteToken::Held(HolderWork::Idle);
            self.committed_root = self.accepted.root;
            self.finish_own_root();
            self.free_replaced_blocks();
        }
        if self.token != WriteToken::Held(HolderWork::Idle) || self.change_members_if_needed() {
            return;
        }
        let next = self.next_holder();
        let is_ready = self.wants_write && self.running.is_none();
        if let Some(to) = next.filter(|_| !(is_ready && self.own_change_first)) {
            self.token_epoch += 1;
            let mut requests = std::mem::take(&mut self.requests);
            requests.remove(&to);
            if self.wants_write {
                requests.insert(self.id);
                self.requested_in = (self.view, self.token_epoch);
            }
            self.token = WriteToken::InTransit { to, requests };
            self.send_token();
        } else if is_ready {
            self.wants_write = false;
            self.own_change_first = false;
            self.running = Some(self.accepted.root);
            self.token = WriteToken::Held(HolderWork::Running);
            self.outputs.push_back(ReplicaOutput::RunChange { base: self.accepted.root });
        }
    }

    /// Returns the next holder: the first requester after this node in the ring of numbers. So each requester
    /// gets the token before another one gets it twice, no matter how often or how near that one is.
    fn next_holder(&mut self) -> Option<ReplicaId> {
        self.requests.retain(|id| self.members.contains(id) && *id != self.id);
        let behind = (Bound::Excluded(self.id), Bound::Unbounded);
        let next = self.requests.range(behind).next().or(self.requests.first()).copied();
        next.or_else(|| self.other_members().first().copied().filter(|_| self.is_leaving))
    }

    /// Sends the token to its receiver.
    fn send_token(&mut self) {
        if let WriteToken::InTransit { to, requests } = self.token.clone() {
            let root = self.accepted.root;
            self.send(to, MessageBody::TransferToken { root, requests });
        }
    }

    /// Processes a change that the driver has applied.
    pub(super) fn change_done(&mut self, new_blocks: Option<NewRoot>) {
        let Some(on) = self.running.take() else { return };
        let is_held = self.token == WriteToken::Held(HolderWork::Running);
        if is_held {
            self.token = WriteToken::Held(HolderWork::Idle);
        }
        let is_aborted = !is_held || !self.is_active() || on != self.accepted.root;
        // A new view began meanwhile, so no other node knows this root.
        self.wants_write |= is_aborted;
        let Some(NewRoot { root, new_blocks, freed }) = new_blocks else { return };
        if is_aborted || Some(root) <= self.accepted.root {
            self.wants_write = true;
            self.outputs.push_back(ReplicaOutput::Aborted { root });
            return;
        }
        self.uncommitted_root = Some(root);
        self.accepted.root = Some(root);
        self.latest.insert(self.id, root);
        for to in self.other_members() {
            self.outputs.push_back(ReplicaOutput::CopyBlocks { to, ids: new_blocks.clone() });
        }
        self.pending_frees.push((root, freed.clone()));
        self.outputs.push_back(ReplicaOutput::Adopt { root });
        self.prepare_root(Some(new_blocks), freed);
    }

    /// Makes all members accept the current root.
    pub(super) fn prepare_root(&mut self, new_blocks: Option<Vec<EchoBlockId>>, freed: Vec<EchoBlockId>) {
        let awaiting = self.members.iter().copied().filter(|id| *id != self.id).collect();
        self.token = WriteToken::Held(HolderWork::Committing { awaiting, new_blocks, freed });
        self.send_prepare();
    }

    /// Sends the current root to members that have not accepted it, and to joining nodes.
    pub(super) fn send_prepare(&mut self) {
        let (WriteToken::Held(work), Some(root)) = (&self.token, self.accepted.root) else { return };
        let (waiting, new_blocks, freed) = match work {
            HolderWork::Committing { awaiting, new_blocks, freed } => {
                (awaiting.clone(), new_blocks.clone(), freed.clone())
            }
            HolderWork::Idle | HolderWork::Running => Default::default(),
        };
        for to in waiting {
            let latest = self.latest.clone();
            self.send(
                to,
                MessageBody::PrepareRoot {
                    root,
                    new_blocks: new_blocks.clone(),
                    freed: freed.clone(),
                    latest,
                },
            );
        }
        for to in self.joiners() {
            let latest = self.latest.clone();
            self.send(to, MessageBody::PrepareRoot { root, new_blocks: None, freed: Vec::new(), latest });
        }
    }

    /// Reports the local root as committed if it led to the current root, else as aborted.
    pub(super) fn finish_own_root(&mut self) {
        let Some(own_root) = self.uncommitted_root.take() else { return };
        if self.latest.get(&self.id).is_some_and(|own| *own >= own_root) {
            self.outputs.push_back(ReplicaOutput::Committed { root: own_root });
        } else {
            self.wants_write = true;
            self.outputs.push_back(ReplicaOutput::Aborted { root: own_root });
        }
    }

    /// All members accepted the current root, so no earlier root becomes current again: frees the blocks that
    /// the earlier roots dropped.
    pub(super) fn free_replaced_blocks(&mut self) {
        for (_, ids) in std::mem::take(&mut self.pending_frees) {
            if !ids.is_empty() {
                self.outputs.push_back(ReplicaOutput::Free { ids });
            }
        }
    }

    /// Processes a root of the holder.
    pub(super) fn root_received(&mut self, checking: Checking) {
        let accepted = super::AcceptedState { view: self.view, root: Some(checking.root) };
        if self.prepared_view != self.view || accepted < self.accepted {
            return;
        }
        if self.accepted.root == Some(checking.root) {
            self.accept_root(checking.from, checking.root, checking.latest);
        } else if self.checking.as_ref().is_none_or(|known| known.root != checking.root) {
            let (root, new_blocks) = (checking.root, checking.new_blocks.clone());
            self.checking = Some(checking);
            self.outputs.push_back(ReplicaOutput::Check { root, new_blocks });
        }
    }

    /// Processes the list of missing blocks of a received root.
    pub(super) fn root_checked(&mut self, root: EchoBlockId, missing: Vec<EchoBlockId>) {
        // The result of a repeated check may arrive after the next root.
        let Some(mut checking) = self.checking.take_if(|checking| checking.root == root) else { return };
        if self.prepared_view != self.view {
            return;
        }
        if missing.is_empty() {
            let Checking { from, freed, latest, .. } = checking;
            if self.accepted.view != self.view {
                // A root that is not known to precede this one may have freed blocks that this one reaches.
                // Garbage collection removes the rest later.
                self.pending_frees.retain(|(before, _)| latest.values().any(|in_it| in_it == before));
            }
            self.accepted = super::AcceptedState { view: self.view, root: Some(root) };
            self.pending_frees.push((root, freed));
            self.outputs.push_back(ReplicaOutput::Adopt { root });
            self.accept_root(from, root, latest);
            return;
        }
        checking.checks += 1;
        // Without a list of new blocks, no copies are on their way yet.
        if checking.checks > 1 || checking.new_blocks.is_none() {
            self.send(checking.from, MessageBody::RequestBlocks { ids: missing });
        }
        self.checking = Some(checking);
    }

    fn accept_root(&mut self, from: ReplicaId, root: EchoBlockId, latest: Latest) {
        self.accepted.view = self.view;
        self.latest = latest;
        // The local root was created in an earlier view, or before this node was removed.
        self.finish_own_root();
        self.send(from, MessageBody::AcceptRoot { root });
    }

    /// Retransmits the token request, the token and the root, and checks the received root again.
    pub(super) fn retry(&mut self) {
        if let Some(Checking { root, new_blocks, .. }) = self.checking.clone() {
            self.outputs.push_back(ReplicaOutput::Check { root, new_blocks });
        }
        self.send_prepare();
        match self.token {
            WriteToken::InTransit { .. } => self.send_token(),
            WriteToken::Elsewhere { holder } if self.wants_write && self.is_active() => {
                self.send(holder, MessageBody::RequestToken)
            }
            WriteToken::Elsewhere { .. } | WriteToken::Held(_) => {}
        }
    }
}
