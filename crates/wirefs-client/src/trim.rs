//! How much is known at once: nodes that the kernel holds, and listings as entries.
//!
//! The kernel keeps what it was told for as long as it has memory, and so must the client, for whom a node is dearer. Beyond a bound the
//! kernel is told to forget the oldest names; it gives back those that nobody uses. Listings beyond another go to the shelf, where an
//! entry takes a tenth of the room.

use crate::core::{Client, Output};
use std::ops::Bound;
use std::time::Duration;
use wirefs_cache::{NodeId, ROOT};
use wirefs_op::Time;

/// Nodes known at once, beyond which the kernel is told to forget. One takes about 1 KiB with its names.
const NODES_MAX: usize = 65_536;
/// Entries of listings that are not packed.
const ENTRIES_MAX: usize = 65_536;
/// How often the kernel is told to forget names, at most: it takes a while over it.
const PAUSE: Duration = Duration::from_millis(100);
/// Names that it is told to forget at once, at most.
const NAMES_AT_ONCE: usize = 32_768;

/// The bounds, and what was done for them.
#[derive(Debug)]
pub(crate) struct Trim {
    nodes_max: usize,
    entries_max: usize,
    next: Time,
    /// The last node that was to go.
    last: NodeId,
}

impl Default for Trim {
    fn default() -> Trim {
        Trim { nodes_max: NODES_MAX, entries_max: ENTRIES_MAX, next: Time(0), last: ROOT }
    }
}

impl Client {
    /// Bounds what is known at once: nodes that the kernel may be told to forget, and entries of listings that are not packed.
    pub fn bound_names(&mut self, nodes_max: usize, entries_max: usize) {
        (self.trim.nodes_max, self.trim.entries_max) = (nodes_max, entries_max);
    }

    /// Lets go of what is beyond the bounds.
    pub(crate) fn keep_within_bounds(&mut self) {
        let is_over =
            self.names.len() > self.trim.nodes_max || self.directories.entries() > self.trim.entries_max;
        if !is_over || self.now < self.trim.next {
            return;
        }
        self.trim.next = self.now + PAUSE;
        self.shelve_oldest();
        self.forget_oldest();
    }

    /// A quarter of the listings goes to the shelf, those that were asked for first. What is not leased stays: it is old soon.
    fn shelve_oldest(&mut self) {
        if self.directories.entries() <= self.trim.entries_max {
            return;
        }
        for node in self.directories.by_age() {
            if self.directories.entries() <= self.trim.entries_max / 4 * 3 {
                return;
            }
            if self.shelve(node) {
                self.directories.forget(node);
            }
        }
    }

    /// The kernel is told to let go of the oldest nodes, all but directories: those go when nothing of theirs is used.
    fn forget_oldest(&mut self) {
        let surplus = self.names.len().saturating_sub(self.trim.nodes_max / 4 * 3);
        if self.names.len() <= self.trim.nodes_max {
            return;
        }
        let behind = (Bound::Excluded(self.trim.last), Bound::Unbounded);
        let oldest: Vec<NodeId> = self.names.idle_files(behind).take(surplus.min(NAMES_AT_ONCE)).collect();
        self.trim.last = oldest.last().copied().unwrap_or(ROOT);
        for node in oldest {
            let names = self.names.links(node);
            self.output(Output::LetGo(node, names));
        }
    }
}
