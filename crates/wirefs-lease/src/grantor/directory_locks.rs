//! Which change may change the names of which directories: each waits until it can have all that it needs at once.
//!
//! Nobody waits while it has something, so no circle of waiting can close. The oldest that waits is passed by nobody who
//! needs one of the same directories, so each comes to its turn.

use super::JobKey;
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::FileId;

/// When a change first asked for its directories, as a number that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(pub(super) u64);

/// The directories that are taken, and who waits for some.
#[derive(Debug, Default)]
pub(super) struct DirectoryLocks {
    taken: BTreeMap<FileId, JobKey>,
    waiting: BTreeMap<Ticket, (JobKey, BTreeSet<FileId>)>,
}

impl DirectoryLocks {
    /// Takes all these directories, or gives up those that the job has and waits for all. What it has and does not name
    /// is given up. True when it has them.
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

    /// Whether the job waits.
    pub(super) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.waiting.contains_key(&ticket)
    }

    /// Gives up all that the job has or waits for.
    pub(super) fn release(&mut self, ticket: Ticket, job: JobKey) {
        self.waiting.remove(&ticket);
        self.taken.retain(|_, owner| *owner != job);
    }

    /// Lets those take their directories for whom all are free, the oldest first.
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

    /// Whether the job has all these.
    fn has(&self, job: JobKey, wanted: &BTreeSet<FileId>) -> bool {
        wanted.iter().all(|id| self.taken.get(id) == Some(&job))
    }
}

#[cfg(test)]
mod tests;
