//! Locks of the file system in memory, with their waiters.

use wirefs_client::call::{Answer, CallId, TreeNodeId};
use wirefs_fuse::Reply;
use wirefs_op::{Errno, LockFamily, LockKind, LockRange};

#[derive(Clone, Copy)]
struct Lock {
    node: TreeNodeId,
    family: LockFamily,
    owner: u64,
    range: LockRange,
}

impl Lock {
    fn overlaps(&self, other: &Lock) -> bool {
        self.node == other.node
            && self.family == other.family
            && self.range.start <= other.range.end
            && other.range.start <= self.range.end
    }

    fn excludes(&self, other: &Lock) -> bool {
        let exclusive = self.range.kind == LockKind::Write || other.range.kind == LockKind::Write;
        exclusive && self.owner != other.owner && self.overlaps(other)
    }
}

#[derive(Default)]
pub(crate) struct Locks {
    held: Vec<Lock>,
    waiting: Vec<(Lock, Reply)>,
}

impl Locks {
    /// Takes or releases a lock, or waits for it. Returns the answers that are due.
    pub(crate) fn set(
        &mut self,
        node: TreeNodeId,
        family: LockFamily,
        owner: u64,
        range: LockRange,
        reply: Reply,
        wait: bool,
    ) -> Vec<(Reply, Answer)> {
        let lock = Lock { node, family, owner, range };
        if range.kind != LockKind::Unlock && self.held.iter().any(|held| held.excludes(&lock)) {
            if wait {
                self.waiting.push((lock, reply));
                return Vec::new();
            }
            return vec![(reply, Answer::Fail(Errno::WouldBlock))];
        }
        self.held.retain(|held| held.owner != owner || !held.overlaps(&lock));
        if range.kind != LockKind::Unlock {
            self.held.push(lock);
        }
        let mut settled = self.retry();
        settled.push((reply, Answer::Done));
        settled
    }

    /// The owner closed the file: releases its POSIX locks or its flock locks.
    pub(crate) fn close(&mut self, node: TreeNodeId, owner: u64, flock: bool) -> Vec<(Reply, Answer)> {
        let family = if flock { LockFamily::Flock } else { LockFamily::Posix };
        self.held.retain(|held| held.node != node || held.owner != owner || held.family != family);
        self.retry()
    }

    pub(crate) fn conflict(
        &self,
        node: TreeNodeId,
        family: LockFamily,
        owner: u64,
        range: LockRange,
    ) -> Option<LockRange> {
        let lock = Lock { node, family, owner, range };
        self.held.iter().find(|held| held.excludes(&lock)).map(|held| held.range)
    }

    /// Removes a waiting call, and returns its reply.
    pub(crate) fn interrupt(&mut self, call: CallId) -> Option<Reply> {
        let place = self.waiting.iter().position(|(_, reply)| reply.id() == call)?;
        Some(self.waiting.swap_remove(place).1)
    }

    fn retry(&mut self) -> Vec<(Reply, Answer)> {
        let mut settled = Vec::new();
        for (lock, reply) in std::mem::take(&mut self.waiting) {
            if self.held.iter().any(|held| held.excludes(&lock)) {
                self.waiting.push((lock, reply));
            } else {
                self.held.push(lock);
                settled.push((reply, Answer::Done));
            }
        }
        settled
    }
}
