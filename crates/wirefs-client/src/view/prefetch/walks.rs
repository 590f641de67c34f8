//! Recent accesses to directories. They show whether a program walks a tree, or reads in one place.

use super::order::{Order, Place};
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_op::{DirEntry, FileId, Time};

/// Directories whose use is remembered, at most. One takes about 150 bytes.
const SEEN_MAX: usize = 8192;
/// An access that follows within this time, beside two round trips, is by a program and no person.
const SPEED: Duration = Duration::from_millis(200);
/// An access longer ago than this, beside eight round trips, belongs to no walk any more.
const SPAN: Duration = Duration::from_secs(1);

/// Accesses to one directory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Since when.
    since: Time,
    /// Its listing became known then.
    listed: Option<Time>,
    /// A program listed it then.
    opened: Option<Time>,
    /// The directories in it that were asked for: the last one, and how many.
    child: Option<TreeNodeId>,
    children: u32,
    /// The directory in it that a program listed last.
    pub(crate) listed_child: Option<TreeNodeId>,
    /// Small files in it that were opened.
    files: u32,
    /// Directories in it of which contents were read.
    reading: u32,
    /// All below it was asked for.
    pub(crate) is_streamed: bool,
    /// Its files are read one after the other.
    pub(crate) is_read: bool,
    /// A little of what is in the directories in it was asked for.
    pub(crate) is_looked_around: bool,
    /// The contents of its small files were asked for.
    pub(crate) is_fetched: bool,
    /// How many directories were asked for ahead the last time that the stream of all did not reach.
    pub(crate) ahead: usize,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Walks {
    seen: BTreeMap<TreeNodeId, Seen>,
    /// In which order directories were walked last.
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

    /// Its listing is known now.
    pub(crate) fn listed(&mut self, dir: TreeNodeId, pace: Pace) {
        self.seen(dir, pace).listed = Some(pace.now);
    }

    /// A program lists it.
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

    /// Whether a program has just listed it, and that was new to it.
    pub(crate) fn is_walked_now(&mut self, dir: TreeNodeId, pace: Pace) -> bool {
        let seen = self.seen(dir, pace);
        pace.is_speedy(seen.opened) && pace.is_speedy(seen.listed)
    }

    /// The order in which directories are walked.
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// Of the directories of this listing one is walked right behind `before`.
    pub(crate) fn note_order(&mut self, listing: &[DirEntry], before: Option<&Place>, next: FileId) {
        self.order = Order::of_step(listing, before, next).unwrap_or(self.order);
    }

    /// Whether directories in it were asked for.
    pub(crate) fn is_entered(&mut self, dir: TreeNodeId, pace: Pace) -> bool {
        self.seen(dir, pace).children > 0
    }

    /// A small file in it is opened. Tells how many were.
    pub(crate) fn reads(&mut self, dir: TreeNodeId, pace: Pace) -> u32 {
        let seen = self.seen(dir, pace);
        seen.files += 1;
        seen.files
    }

    /// Contents of files in `child` are being read. Tells of how many directories in `parent` they were.
    pub(crate) fn reads_in(&mut self, parent: TreeNodeId, is_first: bool, pace: Pace) -> u32 {
        let seen = self.seen(parent, pace);
        seen.reading += u32::from(is_first);
        seen.reading
    }

    /// Whether a program has just listed it.
    pub(crate) fn is_being_walked(&mut self, dir: TreeNodeId, pace: Pace) -> bool {
        pace.is_speedy(self.seen(dir, pace).opened)
    }

    /// Whether a program listed it since it began to go through what is below.
    pub(crate) fn was_listed_by_program(&mut self, dir: TreeNodeId, pace: Pace) -> bool {
        self.seen(dir, pace).opened.is_some()
    }

    /// Whether it has just become known.
    pub(crate) fn is_new(&mut self, dir: TreeNodeId, pace: Pace) -> bool {
        pace.is_speedy(self.seen(dir, pace).listed)
    }

    /// The mount is another one now, as it were.
    pub(crate) fn clear(&mut self) {
        self.seen.clear();
    }
}

#[cfg(test)]
mod tests;
