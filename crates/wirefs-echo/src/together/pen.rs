//! The pen: making a root, and seeing to it that all have it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Bound;

use super::message::{Body, Latest};
use super::{Made, NodeId, Output, Together};
use crate::block::BlockId;

/// Where the right to make roots is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pen {
    Held(Work),
    /// On its way; nobody makes roots meanwhile.
    Passing {
        to: NodeId,
        /// Who else had asked for it, this node among them. Who asks from now on waits here.
        asked: BTreeSet<NodeId>,
    },
    Elsewhere {
        holder: NodeId,
    },
}

/// What its holder does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Idle,
    Running,
    /// Waits until these have the root.
    Settling {
        waits_for: BTreeSet<NodeId>,
        made: Option<Vec<BlockId>>,
        freed: Vec<BlockId>,
    },
}

/// A root that was told, until all of its blocks are here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checking {
    pub(super) from: NodeId,
    pub(super) root: BlockId,
    pub(super) made: Option<Vec<BlockId>>,
    pub(super) freed: Vec<BlockId>,
    pub(super) latest: Latest,
    /// What is still missing at the second look does not come by itself.
    pub(super) looks: u32,
}

impl Together {
    /// Does what can be done with the pen now.
    pub(super) fn go_on(&mut self) {
        if !self.is_active() {
            return;
        }
        if let Pen::Elsewhere { holder } = self.pen
            && self.wants
            && self.asked_in != (self.view, self.turn)
        {
            self.asked_in = (self.view, self.turn);
            self.send(holder, Body::Want);
        }
        if let Pen::Held(Work::Settling { waits_for, .. }) = &self.pen
            && waits_for.is_empty()
        {
            self.pen = Pen::Held(Work::Idle);
            self.settled = self.stand.root;
            self.settle();
            self.free();
        }
        if self.pen != Pen::Held(Work::Idle) || self.begin_view_if_needed() {
            return;
        }
        let next = self.next_in_turn();
        let is_ready = self.wants && self.running.is_none();
        if let Some(to) = next.filter(|_| !(is_ready && self.is_own_turn)) {
            self.turn += 1;
            let mut asked = std::mem::take(&mut self.asked);
            asked.remove(&to);
            if self.wants {
                asked.insert(self.me);
                self.asked_in = (self.view, self.turn);
            }
            self.pen = Pen::Passing { to, asked };
            self.pass();
        } else if is_ready {
            self.wants = false;
            self.is_own_turn = false;
            self.running = Some(self.stand.root);
            self.pen = Pen::Held(Work::Running);
            self.outputs.push_back(Output::Run { on: self.stand.root });
        }
    }

    /// Who has the pen next: of those who asked, the first one behind this node in the ring of numbers. So each has it before another
    /// has it twice, however often that one asks and however near it is.
    fn next_in_turn(&mut self) -> Option<NodeId> {
        self.asked.retain(|id| self.members.contains(id) && *id != self.me);
        let behind = (Bound::Excluded(self.me), Bound::Unbounded);
        let next = self.asked.range(behind).next().or(self.asked.first()).copied();
        next.or_else(|| self.others().first().copied().filter(|_| self.leaves))
    }

    /// Says whose it is now.
    fn pass(&mut self) {
        if let Pen::Passing { to, asked } = self.pen.clone() {
            let root = self.stand.root;
            self.send(to, Body::Pass { root, asked });
        }
    }

    /// The driver has made a change.
    pub(super) fn made(&mut self, made: Option<Made>) {
        let Some(on) = self.running.take() else { return };
        let is_held = self.pen == Pen::Held(Work::Running);
        if is_held {
            self.pen = Pen::Held(Work::Idle);
        }
        let is_in_vain = !is_held || !self.is_active() || on != self.stand.root;
        // A view has ended meanwhile: nobody has heard of this root.
        self.wants |= is_in_vain;
        let Some(Made { root, made, freed }) = made else { return };
        if is_in_vain || Some(root) <= self.stand.root {
            self.wants = true;
            self.outputs.push_back(Output::Undone { root });
            return;
        }
        self.pending = Some(root);
        self.stand.root = Some(root);
        self.latest.insert(self.me, root);
        for to in self.others() {
            self.outputs.push_back(Output::Copy { to, ids: made.clone() });
        }
        self.unfreed.push((root, freed.clone()));
        self.outputs.push_back(Output::Adopt { root });
        self.tell_root(Some(made), freed);
    }

    /// Has all members take the present root.
    pub(super) fn tell_root(&mut self, made: Option<Vec<BlockId>>, freed: Vec<BlockId>) {
        let waits_for = self.members.iter().copied().filter(|id| *id != self.me).collect();
        self.pen = Pen::Held(Work::Settling { waits_for, made, freed });
        self.send_root();
    }

    /// Tells those of the present root who do not have it, and those who would like to join.
    pub(super) fn send_root(&mut self) {
        let (Pen::Held(work), Some(root)) = (&self.pen, self.stand.root) else { return };
        let (waiting, made, freed) = match work {
            Work::Settling { waits_for, made, freed } => (waits_for.clone(), made.clone(), freed.clone()),
            Work::Idle | Work::Running => Default::default(),
        };
        for to in waiting {
            let latest = self.latest.clone();
            self.send(to, Body::Root { root, made: made.clone(), freed: freed.clone(), latest });
        }
        for to in self.joiners() {
            let latest = self.latest.clone();
            self.send(to, Body::Root { root, made: None, freed: Vec::new(), latest });
        }
    }

    /// All have the present root, the own pending one among what led to it or not.
    pub(super) fn settle(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        if self.latest.get(&self.me).is_some_and(|own| *own >= pending) {
            self.outputs.push_back(Output::Settled { root: pending });
        } else {
            self.wants = true;
            self.outputs.push_back(Output::Undone { root: pending });
        }
    }

    /// All have the present root, so nothing goes back behind it: what roots let go of that led to it can go.
    pub(super) fn free(&mut self) {
        for (_, ids) in std::mem::take(&mut self.unfreed) {
            if !ids.is_empty() {
                self.outputs.push_back(Output::Free { ids });
            }
        }
    }

    /// The holder tells its root.
    pub(super) fn told_root(&mut self, checking: Checking) {
        let stand = super::Stand { view: self.view, root: Some(checking.root) };
        if self.promised != self.view || stand < self.stand {
            return;
        }
        if self.stand.root == Some(checking.root) {
            self.has_root(checking.from, checking.root, checking.latest);
        } else if self.checking.as_ref().is_none_or(|known| known.root != checking.root) {
            let (root, made) = (checking.root, checking.made.clone());
            self.checking = Some(checking);
            self.outputs.push_back(Output::Check { root, made });
        }
    }

    /// What is missing of a root that was told.
    pub(super) fn checked(&mut self, root: BlockId, lacking: Vec<BlockId>) {
        // A root that was looked at again may be late, behind the next one.
        let Some(mut checking) = self.checking.take_if(|checking| checking.root == root) else { return };
        if self.promised != self.view {
            return;
        }
        if lacking.is_empty() {
            let Checking { from, freed, latest, .. } = checking;
            if self.stand.view != self.view {
                // A root that is not known to have led to this one may have let go of what this one reaches. What stays of
                // that is swept up later.
                self.unfreed.retain(|(before, _)| latest.values().any(|in_it| in_it == before));
            }
            self.stand = super::Stand { view: self.view, root: Some(root) };
            self.unfreed.push((root, freed));
            self.outputs.push_back(Output::Adopt { root });
            self.has_root(from, root, latest);
            return;
        }
        checking.looks += 1;
        // Without a list nothing of it is on its way yet.
        if checking.looks > 1 || checking.made.is_none() {
            self.send(checking.from, Body::Lack { ids: lacking });
        }
        self.checking = Some(checking);
    }

    fn has_root(&mut self, from: NodeId, root: BlockId, latest: Latest) {
        self.stand.view = self.view;
        self.latest = latest;
        // It was made in an earlier view, or before this node was left out.
        self.settle();
        self.send(from, Body::Have { root });
    }

    /// Asks for the pen again, passes it again, tells the root again, looks for blocks again.
    pub(super) fn retry(&mut self) {
        if let Some(Checking { root, made, .. }) = self.checking.clone() {
            self.outputs.push_back(Output::Check { root, made });
        }
        self.send_root();
        match self.pen {
            Pen::Passing { .. } => self.pass(),
            Pen::Elsewhere { holder } if self.wants && self.is_active() => self.send(holder, Body::Want),
            Pen::Elsewhere { .. } | Pen::Held(_) => {}
        }
    }
}
