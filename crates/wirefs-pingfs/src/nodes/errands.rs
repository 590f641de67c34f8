//! What takes waiting for blocks, and so is done by a thread of its own.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use wirefs_blocks::id::BlockId;
use wirefs_echo::together::NodeId;

use crate::limits::COPIES_MAX;

/// A root that is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) root: BlockId,
    /// Its new blocks; none: all that it reaches.
    pub(super) made: Option<Vec<BlockId>>,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Errands {
    check: Option<Check>,
    /// The one that was looked at last, and what of it is awaited.
    last: Option<Check>,
    awaited: BTreeSet<BlockId>,
    came_at: Option<Instant>,
    copies: VecDeque<(NodeId, Vec<BlockId>)>,
    unread: Option<BlockId>,
}

impl Errands {
    /// Has a root looked at, unless what was missing of it is just coming.
    pub(super) fn check(&mut self, check: Check, patience: Duration) {
        let is_coming = self.came_at.is_some_and(|at| at.elapsed() < patience) && !self.awaited.is_empty();
        if !(is_coming && self.last.as_ref() == Some(&check)) {
            self.check = Some(check);
        }
    }

    /// The root that is to be looked at now.
    pub(super) fn next_check(&mut self) -> Option<Check> {
        let check = self.check.take()?;
        self.last = Some(check.clone());
        Some(check)
    }

    /// Notes what is missing of the root that was looked at.
    pub(super) fn wait_for(&mut self, lacking: impl IntoIterator<Item = BlockId>) {
        self.awaited = lacking.into_iter().collect();
    }

    /// A block came. True when it was the last one that was awaited.
    pub(super) fn came(&mut self, id: BlockId) -> bool {
        let is_last = self.awaited.remove(&id) && self.awaited.is_empty();
        self.came_at = Some(Instant::now());
        if is_last {
            self.check = self.check.take().or(self.last.clone());
        }
        is_last
    }

    /// Has blocks copied to a node, unless too much of that waits: then they are asked for again.
    pub(super) fn copy(&mut self, to: NodeId, ids: Vec<BlockId>) {
        if self.copies.len() < COPIES_MAX && !ids.is_empty() && !self.copies.contains(&(to, ids.clone())) {
            self.copies.push_back((to, ids));
        }
    }

    /// The blocks that are to be copied next, so many at most.
    pub(super) fn next_copy(&mut self, count_max: usize) -> Option<(NodeId, Vec<BlockId>)> {
        let (to, mut ids) = self.copies.pop_front()?;
        if ids.len() > count_max {
            self.copies.push_back((to, ids.split_off(count_max)));
        }
        Some((to, ids))
    }

    /// Has a root read for the tree that is to go over to it, in place of any before.
    pub(super) fn read(&mut self, root: BlockId) {
        self.unread = Some(root);
    }

    /// The root that is to be read now.
    pub(super) fn next_to_read(&mut self) -> Option<BlockId> {
        self.unread.take()
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.check.is_none() && self.copies.is_empty() && self.unread.is_none()
    }
}
