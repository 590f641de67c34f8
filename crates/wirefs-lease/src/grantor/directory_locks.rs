//! Exclusive locks on directories, for changes of their names. A change acquires all its directories at once
//! or waits.
//!
//! Deadlock is impossible, since no job holds a lock while it waits. Starvation is impossible too: no job
//! overtakes an older one that needs one of the same directories.

use super::JobKey;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::FileId;

/// The age of a change: a growing number, taken at its first request for locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(pub(super) u64);

/// The locked directories and the waiting jobs.
#[derive(Debug, Default)]
pub(super) struct DirectoryLocks {
    taken: BTreeMap<FileId, JobKey>,
    waiting: BTreeMap<Ticket, (JobKey, BTreeSet<FileId>)>,
}

impl DirectoryLocks {
    /// Locks exactly these directories, or releases those that the job holds and queues it for all of them.
    /// Returns true if the job has them now.
    pub(super) fn take(&mut self, ticket: Ticket, job: JobKey, wanted: BTreeSet<FileId>) -> bool {
        if self.has(job, &wanted) && !self.is_waiting(ticket) {
            self.taken.retain(|id, owner| *owner != job || wanted.contains(id));
        } else {
            self.release(ticket, job);
            self.waiting.insert(ticket, (job, wanted));
        }
        self.advance();
        !self.is_waiting(ticket)
    }

    /// Returns true if the job waits.
    pub(super) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.waiting.contains_key(&ticket)
    }

    /// Releases the job's locks and removes it from the queue.
    pub(super) fn release(&mut self, ticket: Ticket, job: JobKey) {
        self.waiting.remove(&ticket);
        self.taken.retain(|_, owner| *owner != job);
    }

    /// Gives waiting jobs their locks, oldest first, if all of their directories are free.
    pub(super) fn advance(&mut self) {
        let mut reserved = BTreeSet::new();
        let mut served = Vec::new();
        for (ticket, (job, wanted)) in &self.waiting {
            let is_free = |id: &FileId| !self.taken.contains_key(id) && !reserved.contains(id);
            if wanted.iter().all(is_free) {
                self.taken.extend(wanted.iter().map(|id| (*id, *job)));
                served.push(*ticket);
            } else {
                reserved.extend(wanted.iter().copied());
            }
        }
        for ticket in served {
            self.waiting.remove(&ticket);
        }
    }

    /// Returns true if the job holds all these locks.
    fn has(&self, job: JobKey, wanted: &BTreeSet<FileId>) -> bool {
        wanted.iter().all(|id| self.taken.get(id) == Some(&job))
    }
}

#[cfg(test)]
mod tests;
