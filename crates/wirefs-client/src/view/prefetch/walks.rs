//! Recent accesses to directories. They show whether a program walks a tree, or reads in one place.

use super::order::{Order, Place};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_op::{DirEntry, FileId, Time};

/// The maximum number of directories with a record. A record takes about 150 bytes.
const SEEN_MAX: usize = 8192;
/// An access within this time and two round trips of the previous one is by a program, not by a person.
const SPEED: Duration = Duration::from_millis(200);
/// An access that is longer ago than this and eight round trips does not belong to a present walk.
const SPAN: Duration = Duration::from_secs(1);

/// Accesses to one directory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// The time of the latest access.
    since: Time,
    /// When its listing was received.
    listed: Option<Time>,
    /// When a program listed it.
    opened: Option<Time>,
    /// The last requested directory in it, and the number of requested ones.
    child: Option<TreeNodeId>,
    children: u32,
    /// The directory in it that a program listed last.
    pub(crate) listed_child: Option<TreeNodeId>,
    /// The number of small files in it that were opened.
    files: u32,
    /// The number of directories in it in which files were read.
    reading: u32,
    /// All listings below it were requested.
    pub(crate) is_streamed: bool,
    /// A program reads its files one after the other.
    pub(crate) is_read: bool,
    /// Some small files in the directories below it were requested.
    pub(crate) is_looked_around: bool,
    /// The contents of its small files were requested.
    pub(crate) is_fetched: bool,
    /// How many directories were prefetched the last time that a stream of all listings did not reach far enough.
    pub(crate) ahead: usize,
}

/// The records of all directories.
#[derive(Debug, Default)]
pub(crate) struct Walks {
    seen: BTreeMap<TreeNodeId, Seen>,
    /// The order of the latest walk.
    order: Order,
}

/// The time scale by which accesses belong together, on a path with this round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) now: Time,
    pub(crate) rtt: Duration,
}

impl Pace {
    pub(crate) fn is_speedy(&self, since: Option<Time>) -> bool {
        since.is_some_and(|since| self.now <= since + SPEED + self.rtt * 2)
    }

    fn is_of_now(&self, since: Time) -> bool {
        self.now <= since + SPAN + self.rtt * 8
    }
}

impl Walks {
    /// The record of this directory.
    pub(crate) fn seen(&mut self, dir: TreeNodeId, pace: Pace) -> &mut Seen {
        if self.seen.len() >= SEEN_MAX && !self.seen.contains_key(&dir) {
            self.seen.retain(|_, seen| pace.is_of_now(seen.since));
            if self.seen.len() >= SEEN_MAX {
                self.seen.clear();
            }
        }
        let seen = self.seen.entry(dir).or_default();
        if !pace.is_of_now(seen.since) {
            *seen = Seen { listed: seen.listed, opened: seen.opened, ..Seen::default() };
        }
        seen.since = pace.now;
        seen
    }

    /// Notes that the listing of `dir` was received.
    pub(crate) fn listed(&mut self, dir: TreeNodeId, pace: Pace) {
        self.seen(dir, pace).listed = Some(pace.now);
    }

    /// Notes that a program lists `dir`.
    pub(crate) fn opened(&mut self, dir: TreeNodeId, pace: Pace) {
        self.seen(dir, pace).opened = Some(pace.now);
    }

    /// Notes a request for a directory in `parent`. Returns whether it is part of a walk: another directory in `parent` was requested
    /// before, or `parent` was just listed.
    pub(crate) fn enters(&mut self, parent: TreeNodeId, child: TreeNodeId, pace: Pace) -> bool {
        let seen = self.seen(parent, pace);
        if seen.child != Some(child) {
            seen.child = Some(child);
            seen.children += 1;
        }
        seen.children >= 2 || (pace.is_speedy(seen.opened) && pace.is_speedy(seen.listed))
    }

    /// Whether a program has just listed `dir`, and the listing was received just before.
    pub(crate) fn is_walked_now(&mut self, dir: TreeNodeId, pace: Pace) -> bool {
        let seen = self.seen(dir, pace);
        pace.is_speedy(seen.opened) && pace.is_speedy(seen.listed)
    }

    /// The order in which directories are walked.
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Learns the order from one step of a walk: from `before` to `next`, both directories of this listing.
    pub(crate) fn note_order(&mut self, listing: &[DirEntry], before: Option<&Place>, next: FileId) {
        self.order = Order::of_step(listing, before, next).unwrap_or(self.order);
    }

    /// Whether directories in `dir` were requested.
    pub(crate) fn is_entered(&mut self, dir: TreeNodeId, pace: Pace) -> bool {
        self.seen(dir, pace).children > 0
    }

    /// Notes the open of a small file in `dir`. Returns the number of such opens.
    pub(crate) fn reads(&mut self, dir: TreeNodeId, pace: Pace) -> u32 {
        let seen = self.seen(dir, pace);
        seen.files += 1;
        seen.files
    }

    /// Notes a read of files in a directory in `parent`. Returns the number of directories with such reads.
    pub(crate) fn reads_in(&mut self, parent: TreeNodeId, is_first: bool, pace: Pace) -> u32 {
        let seen = self.seen(parent, pace);
        seen.reading += u32::from(is_first);
        seen.reading
    }

    /// Whether a program has just listed `dir`.
    pub(crate) fn is_being_walked(&mut self, dir: TreeNodeId, pace: Pace) -> bool {
        pace.is_speedy(self.seen(dir, pace).opened)
    }

    /// Whether a program has listed `dir` during its present walk.
    pub(crate) fn was_listed_by_program(&mut self, dir: TreeNodeId, pace: Pace) -> bool {
        self.seen(dir, pace).opened.is_some()
    }

    /// Whether the listing of `dir` was just received.
    pub(crate) fn is_new(&mut self, dir: TreeNodeId, pace: Pace) -> bool {
        pace.is_speedy(self.seen(dir, pace).listed)
    }

    /// Forgets all records.
    pub(crate) fn clear(&mut self) {
        self.seen.clear();
    }
}

#[cfg(test)]
mod tests;
