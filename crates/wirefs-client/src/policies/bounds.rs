//! Bounds on memory: nodes that the kernel holds, listings as entries and packed, and contents.
//!
//! The user's limit covers all of them, and all other memory of the process. Nodes may take a quarter of it, listings a
//! sixteenth, and packed listings a quarter, each also bounded by a fixed maximum. Contents get the rest, and at least
//! an eighth.
//!
//! The kernel keeps names for as long as it has memory. The client must keep each node that the kernel keeps, and needs
//! more memory for it. So beyond a bound it asks the kernel to release the oldest names; the kernel releases those that
//! no program uses. Listings beyond another bound become inactive: a packed entry takes a tenth of the memory.

use crate::kernel::CallsInProgress;
use crate::output::{Output, Outputs};
use crate::view::View;
use crate::view::bounds::{LONGEST_FACTOR, MemoryStatus};
use std::ops::Bound;
use std::time::Duration;
use wirefs_cache::{ROOT, TreeNodeId};

/// The minimum time between two requests to the kernel to release names, since it takes a while over them.
const PAUSE: Duration = Duration::from_millis(100);

/// How long memory must be short before nodes are released for it.
const SHORT_MAX: Duration = Duration::from_secs(1);
/// The memory that a node takes with all tables, in bytes.
const BYTES_OF_NODE: usize = 2 * 1024;
/// If memory is short, at least one in this many of the allowed nodes stays.
const NODES_LEAST_PART: usize = 4;

/// The minimum number of measurements of the process's memory while an empty cache fills.
const MEASUREMENTS: usize = 128;

/// The maximum number of names that the kernel is asked to release at once.
const NAMES_AT_ONCE: usize = 32_768;

impl View {
    /// The maximum number of prefetched unused directories; the same number of files.
    pub(crate) fn unused_max(&self) -> usize {
        self.bounds.nodes_max / 2
    }

    /// The present memory use.
    pub(crate) fn memory(&self) -> MemoryStatus {
        self.memory_beside(self.files.listing_bytes(|dir, listing| self.directories.is_current(dir, listing)))
    }

    /// An upper bound of the present memory use. Computed at each call, so it walks no list.
    fn memory_max(&self) -> MemoryStatus {
        self.memory_beside(
            self.files.listing_bytes_max(|dir, listing| self.directories.is_current(dir, listing)),
        )
    }

    fn memory_beside(&self, open: usize) -> MemoryStatus {
        MemoryStatus {
            names: self.names.bytes(),
            listings: self.directories.bytes() + open,
            packed: self.inactive.bytes(),
            other: self.bounds.uncounted,
        }
    }

    /// Whether the memory of the process must be measured again: the counted bytes have changed much since the last
    /// time, or that was long ago.
    pub(crate) fn is_measurement_due(&self) -> bool {
        let bounds = &self.bounds;
        self.mount.now >= bounds.next_measurement
            || bounds.counted.abs_diff(bounds.counted_then)
                >= self.mount.config.cache_bytes_max / MEASUREMENTS
    }

    /// Notes the bytes that the process takes beside those that are counted, and makes room for them. Evicted memory stays resident until the
    /// next trim, so an eviction by this makes no measurement due.
    pub(crate) fn note_uncounted(&mut self, bytes: usize, calls: &CallsInProgress, outputs: &mut Outputs) {
        self.bounds.uncounted = bytes;
        self.bounds.next_measurement = self.mount.now + PAUSE;
        self.keep_within_bounds(calls, outputs);
        self.bounds.counted_then = self.bounds.counted;
    }

    /// Bounds the memory of stateless readings.
    pub(crate) fn bound_readings(&mut self) {
        let names = &self.names;
        self.files.stateless.bound(self.mount.now, |dir| names.node(dir).is_some());
    }

    /// Evicts what exceeds the bounds. Contents make room for names.
    pub(crate) fn keep_within_bounds(&mut self, calls: &CallsInProgress, outputs: &mut Outputs) {
        // Calls activate listings as fast as others become inactive. Listings that are about to be dropped do not wait.
        let far_too_many = self.bounds.entries_max * (LONGEST_FACTOR - 1);
        if self.mount.now >= self.bounds.next_listing || self.directories.entries() > far_too_many {
            self.deactivate_surplus(calls);
        }
        let memory = self.memory_max();
        let (nodes, kept) = (self.names.len(), self.nodes_kept(memory.all()));
        if kept < nodes && self.mount.now >= self.bounds.next {
            self.bounds.next = self.mount.now + PAUSE;
            self.bounds.short_since = None;
            self.forget_oldest(nodes - kept, outputs);
        }
        self.files.make_room_beside(memory.all());
        self.bounds.counted = memory.all() - memory.other + self.files.cached_bytes();
    }

    /// Makes listings beyond the bound inactive. Runs for each listing that a stream brings, since it brings many between two calls.
    pub(crate) fn deactivate_surplus(&mut self, calls: &CallsInProgress) {
        if self.directories.entries() <= self.bounds.entries_max || self.mount.now < self.bounds.next_try {
            return;
        }
        self.deactivate_oldest(calls);
        self.bounds.next_listing = self.mount.now + PAUSE;
        if self.directories.entries() > self.bounds.entries_max / 8 * 7 {
            self.bounds.next_try = self.mount.now + PAUSE;
        }
    }

    /// Moves a quarter of the listings, the oldest first, to the inactive list. Listings without a lease stay, as they expire soon. So
    /// does the listing that a call has just activated, since the next call will use it too.
    fn deactivate_oldest(&mut self, calls: &CallsInProgress) {
        for node in self.directories.oldest_first() {
            if self.directories.entries() <= self.bounds.entries_max / 4 * 3 {
                return;
            }
            if self.bounds.taken != Some(node) && self.deactivate(calls, node) {
                self.directories.evict(node);
            }
        }
    }

    /// The number of nodes that the kernel may hold, if all but contents takes this much memory. Nodes give way once memory has been
    /// short for a while although contents are at their least: freed memory returns to the kernel within that time.
    fn nodes_kept(&mut self, beside: usize) -> usize {
        let nodes = self.names.len();
        let least = self.files.contents_bytes_min();
        let short = (beside + least).saturating_sub(self.mount.config.cache_bytes_max);
        let now = self.mount.now;
        let bounds = &mut self.bounds;
        let by_number = if nodes > bounds.nodes_max { bounds.nodes_max / 4 * 3 } else { nodes };
        if short == 0 {
            bounds.short_since = None;
        } else if now.since(*bounds.short_since.get_or_insert(now)) >= SHORT_MAX {
            let by_memory = nodes.saturating_sub(short / BYTES_OF_NODE);
            return by_number.min(by_memory.max(bounds.nodes_max / NODES_LEAST_PART));
        }
        by_number
    }

    /// Asks the kernel to release the oldest nodes, except directories, which it releases when nothing in them is used.
    fn forget_oldest(&mut self, surplus: usize, outputs: &mut Outputs) {
        let behind = (Bound::Excluded(self.bounds.last), Bound::Unbounded);
        let oldest: Vec<TreeNodeId> =
            self.names.idle_files(behind).take(surplus.min(NAMES_AT_ONCE)).collect();
        self.bounds.last = oldest.last().copied().unwrap_or(ROOT);
        for node in oldest {
            let names = self.names.links(node);
            outputs.push(Output::LetGo(node, names));
        }
    }
}
