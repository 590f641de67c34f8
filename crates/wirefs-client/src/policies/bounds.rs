//! Bounds on memory: nodes that the kernel holds, listings as entries and packed, and contents.
//!
//! All of them share the memory that the user allows, with all else that the process takes. Nodes may take a quarter, listings a sixteenth, and packed listings a quarter,
//! each no more than is of use; contents have the rest, and an eighth at least.
//!
//! The kernel keeps names for as long as it has memory, and so must the client, for which a node is more expensive. Beyond a bound
//! the client asks the kernel to release the oldest names; the kernel releases those that no program uses. Listings beyond another
//! bound become inactive: a packed entry takes a tenth of the memory.

use crate::core::Client;
use crate::output::Output;
use crate::view::View;
use crate::view::bounds::{LONGEST_FACTOR, MemoryStatus};
use std::ops::Bound;
use std::time::Duration;
use wirefs_cache::{ROOT, TreeNodeId};

/// How often the kernel is told to forget names, at most: it takes a while over it.
const PAUSE: Duration = Duration::from_millis(100);

/// Memory is short for so long before nodes give way for it.
const SHORT_MAX: Duration = Duration::from_secs(1);
/// The memory that a node takes with all tables, in bytes.
const BYTES_OF_NODE: usize = 2 * 1024;
/// Short memory leaves one in so many of the allowed nodes at least.
const NODES_LEAST_PART: usize = 4;

/// The memory of the process is measured so many times while the cache fills from empty, at least.
const MEASUREMENTS: usize = 128;

/// Names that it is told to forget at once, at most.
const NAMES_AT_ONCE: usize = 32_768;

impl Client {
    /// Bounds what is known at once: nodes that the kernel may be told to forget, and entries of listings that are not packed.
    pub fn bound_names(&mut self, nodes_max: usize, entries_max: usize) {
        (self.view.bounds.nodes_max, self.view.bounds.entries_max) = (nodes_max, entries_max);
    }

    /// So many directories, and so many files, may be known ahead and unused.
    pub(crate) fn unused_max(&self) -> usize {
        self.view.bounds.nodes_max / 2
    }

    /// The present memory use.
    pub(crate) fn memory(&self) -> MemoryStatus {
        self.memory_beside(
            self.view.files.listing_bytes(|dir, listing| self.view.directories.is_current(dir, listing)),
        )
    }

    /// The same, at most. Asked for at each call, so nothing is walked for it.
    fn memory_max(&self) -> MemoryStatus {
        self.memory_beside(
            self.view.files.listing_bytes_max(|dir, listing| self.view.directories.is_current(dir, listing)),
        )
    }

    fn memory_beside(&self, open: usize) -> MemoryStatus {
        MemoryStatus {
            names: self.view.names.bytes(),
            listings: self.view.directories.bytes() + open,
            packed: self.view.inactive.bytes(),
            other: self.view.bounds.uncounted,
        }
    }

    /// The bytes of names, listings and contents.
    pub fn counted_bytes(&self) -> usize {
        self.view.bounds.counted
    }

    /// Whether the memory of the process is to be measured: much has come or gone since the last time, or it is long ago.
    pub fn is_measurement_due(&self) -> bool {
        let bounds = &self.view.bounds;
        self.now >= bounds.next_measurement
            || bounds.counted.abs_diff(bounds.counted_then) >= self.config.cache_bytes_max / MEASUREMENTS
    }

    /// Notes the bytes that the process takes beside those that are counted: contents make room for them.
    pub fn note_uncounted(&mut self, bytes: usize) {
        let bounds = &mut self.view.bounds;
        bounds.uncounted = bytes;
        bounds.counted_then = bounds.counted;
        bounds.next_measurement = self.now + PAUSE;
        self.keep_within_bounds();
    }

    /// Bounds the memory of stateless readings.
    pub(crate) fn bound_readings(&mut self) {
        let View { names, files, .. } = &mut self.view;
        files.stateless.bound(self.now, |dir| names.node(dir).is_some());
    }

    /// Lets go of what is beyond the bounds; contents make room for names.
    pub(crate) fn keep_within_bounds(&mut self) {
        // Calls activate listings as fast as others become inactive. Listings that are about to be dropped do not wait.
        let far_too_many = self.view.bounds.entries_max * (LONGEST_FACTOR - 1);
        if self.now >= self.view.bounds.next_listing || self.view.directories.entries() > far_too_many {
            self.deactivate_surplus();
        }
        let memory = self.memory_max();
        let (nodes, kept) = (self.view.names.len(), self.nodes_kept(memory.all()));
        if kept < nodes && self.now >= self.view.bounds.next {
            self.view.bounds.next = self.now + PAUSE;
            self.view.bounds.short_since = None;
            self.forget_oldest(nodes - kept);
        }
        self.view.files.make_room_beside(memory.all());
        self.view.bounds.counted = memory.all() - memory.other + self.view.files.cached_bytes();
    }

    /// Makes listings beyond the bound inactive. Runs for each listing that a stream brings, since it brings many between two calls.
    pub(crate) fn deactivate_surplus(&mut self) {
        if self.view.directories.entries() <= self.view.bounds.entries_max
            || self.now < self.view.bounds.next_try
        {
            return;
        }
        self.deactivate_oldest();
        self.view.bounds.next_listing = self.now + PAUSE;
        if self.view.directories.entries() > self.view.bounds.entries_max / 8 * 7 {
            self.view.bounds.next_try = self.now + PAUSE;
        }
    }

    /// Moves a quarter of the listings, the oldest first, to the inactive list. Listings without a lease stay, as they expire soon. So
    /// does the listing that a call has just activated, since the next call will use it too.
    fn deactivate_oldest(&mut self) {
        for node in self.view.directories.oldest_first() {
            if self.view.directories.entries() <= self.view.bounds.entries_max / 4 * 3 {
                return;
            }
            if self.view.bounds.taken != Some(node) && self.deactivate(node) {
                self.view.directories.evict(node);
            }
        }
    }

    /// The number of nodes that the kernel may hold, if all but contents takes this much memory. Nodes give way once memory has been
    /// short for a while although contents are at their least: freed memory returns to the kernel within that time.
    fn nodes_kept(&mut self, beside: usize) -> usize {
        let nodes = self.view.names.len();
        let least = self.view.files.contents_bytes_min();
        let short = (beside + least).saturating_sub(self.config.cache_bytes_max);
        let bounds = &mut self.view.bounds;
        let by_number = if nodes > bounds.nodes_max { bounds.nodes_max / 4 * 3 } else { nodes };
        if short == 0 {
            bounds.short_since = None;
        } else if self.now.since(*bounds.short_since.get_or_insert(self.now)) >= SHORT_MAX {
            let by_memory = nodes.saturating_sub(short / BYTES_OF_NODE);
            return by_number.min(by_memory.max(bounds.nodes_max / NODES_LEAST_PART));
        }
        by_number
    }

    /// Asks the kernel to release the oldest nodes, except directories, which it releases when nothing in them is used.
    fn forget_oldest(&mut self, surplus: usize) {
        let behind = (Bound::Excluded(self.view.bounds.last), Bound::Unbounded);
        let oldest: Vec<TreeNodeId> =
            self.view.names.idle_files(behind).take(surplus.min(NAMES_AT_ONCE)).collect();
        self.view.bounds.last = oldest.last().copied().unwrap_or(ROOT);
        for node in oldest {
            let names = self.view.names.links(node);
            self.output(Output::LetGo(node, names));
        }
    }
}
