//! Tasks that wait for blocks and therefore run on the checker thread.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use wirefs_blocks::id::BlockId;
use wirefs_echo::replication::ReplicaId;

use crate::limits::COPIES_MAX;

/// A root whose blocks are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RootCheck {
    pub(super) root: BlockId,
    /// Its new blocks; `None`: all blocks that it reaches.
    pub(super) new_blocks: Option<Vec<BlockId>>,
}

/// The pending tasks.
#[derive(Debug, Default)]
pub(super) struct BackgroundTasks {
    check: Option<RootCheck>,
    /// The last root that was checked, and its missing blocks.
    last: Option<RootCheck>,
    awaited: BTreeSet<BlockId>,
    last_arrival: Option<Instant>,
    copies: VecDeque<(ReplicaId, Vec<BlockId>)>,
    unread: Option<BlockId>,
}

impl BackgroundTasks {
    /// Schedules the check of a root, unless its missing blocks are arriving.
    pub(super) fn check(&mut self, check: RootCheck, timeout: Duration) {
        let is_arriving =
            self.last_arrival.is_some_and(|at| at.elapsed() < timeout) && !self.awaited.is_empty();
        if !(is_arriving && self.last.as_ref() == Some(&check)) {
            self.check = Some(check);
        }
    }

    /// Takes the root to be checked now.
    pub(super) fn next_check(&mut self) -> Option<RootCheck> {
        let check = self.check.take()?;
        self.last = Some(check.clone());
        Some(check)
    }

    /// Records the missing blocks of the checked root.
    pub(super) fn wait_for(&mut self, missing: impl IntoIterator<Item = BlockId>) {
        self.awaited = missing.into_iter().collect();
    }

    /// Records a received block. Returns whether it was the last missing one.
    pub(super) fn block_arrived(&mut self, id: BlockId) -> bool {
        let is_last = self.awaited.remove(&id) && self.awaited.is_empty();
        self.last_arrival = Some(Instant::now());
        if is_last {
            self.check = self.check.take().or(self.last.clone());
        }
        is_last
    }

    /// Schedules copies for a node, unless too many wait: the node requests them again.
    pub(super) fn copy(&mut self, to: ReplicaId, ids: Vec<BlockId>) {
        if self.copies.len() < COPIES_MAX && !ids.is_empty() && !self.copies.contains(&(to, ids.clone())) {
            self.copies.push_back((to, ids));
        }
    }

    /// Takes the next blocks to be copied, at most `count_max`.
    pub(super) fn next_copy(&mut self, count_max: usize) -> Option<(ReplicaId, Vec<BlockId>)> {
        let (to, mut ids) = self.copies.pop_front()?;
        if ids.len() > count_max {
            self.copies.push_back((to, ids.split_off(count_max)));
        }
        Some((to, ids))
    }

    /// Schedules the reading of a root for the tree, in place of an earlier one.
    pub(super) fn read(&mut self, root: BlockId) {
        self.unread = Some(root);
    }

    /// Takes the root to be read now.
    pub(super) fn next_to_read(&mut self) -> Option<BlockId> {
        self.unread.take()
    }

    /// Returns whether no task is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.check.is_none() && self.copies.is_empty() && self.unread.is_none()
    }
}
