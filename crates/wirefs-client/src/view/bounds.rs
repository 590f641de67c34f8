//! Bounds on memory.

use wirefs_cache::inactive_listings::INACTIVE_BYTES_MAX;
use wirefs_cache::{DirectoryCache, Freshness, InactiveListings, NameTree, ROOT, TreeNodeId};
use wirefs_op::{Stat, Time};

/// The maximum number of nodes. Beyond it, the kernel is asked to release some. One takes about 1 KiB with its names.
pub(crate) const NODES_MAX: usize = 65_536;

/// The share of the memory for nodes, in bytes a node.
pub(crate) const BYTES_PER_NODE: usize = 4 * 1024;

/// Entries of listings that are not packed.
pub(crate) const ENTRIES_MAX: usize = 65_536;

/// The share of the memory for entries, in bytes an entry.
pub(crate) const BYTES_PER_ENTRY: usize = 16 * 256;

/// The share of the memory for absent names, in bytes a name: it takes about 100.
pub(crate) const BYTES_PER_ABSENT: usize = 2 * 1024;

/// The longest cached listing may have this many times the allowed entries.
pub(crate) const LONGEST_FACTOR: usize = 4;

/// The minimum bound on nodes, and on entries, however small the memory limit.
pub(crate) const NAMES_MIN: usize = 1024;

/// Packed listings may take one part in this many of the memory.
pub(crate) const INACTIVE_PART: usize = 4;

/// The minimum bound on packed listings, in bytes.
pub(crate) const INACTIVE_BYTES_MIN: usize = 256 * 1024;

/// The bounds, and what was done for them.
#[derive(Debug)]
pub(crate) struct Trim {
    pub(crate) nodes_max: usize,
    pub(crate) entries_max: usize,
    pub(crate) next: Time,
    /// Listings are not checked again before this time, unless there are far too many.
    pub(crate) next_listing: Time,
    /// Listings are not checked at all before this time, since few of them could be packed.
    pub(crate) next_try: Time,
    /// The directory whose listing a call activated last.
    pub(crate) taken: Option<TreeNodeId>,
    /// The last node that the kernel was asked to release.
    pub(crate) last: TreeNodeId,
    /// Names, listings and contents, in bytes; counted at each input.
    pub(crate) counted: usize,
    /// The same at the last measurement of the process's memory.
    pub(crate) counted_then: usize,
    /// The memory of the process beside these, as of the last measurement.
    pub(crate) uncounted: usize,
    /// Since when memory is short although contents are at their minimum.
    pub(crate) short_since: Option<Time>,
    /// When the next measurement is due, if nothing changes.
    pub(crate) next_measurement: Time,
}

impl Trim {
    /// The bounds for a client that may use this many bytes.
    pub(crate) fn within(bytes_max: usize) -> Trim {
        Trim {
            nodes_max: (bytes_max / BYTES_PER_NODE).clamp(NAMES_MIN, NODES_MAX),
            entries_max: (bytes_max / BYTES_PER_ENTRY).clamp(NAMES_MIN, ENTRIES_MAX),
            next: Time(0),
            next_listing: Time(0),
            next_try: Time(0),
            taken: None,
            last: ROOT,
            counted: 0,
            counted_then: 0,
            uncounted: 0,
            short_since: None,
            next_measurement: Time(0),
        }
    }
}

/// The names of a client that may use this many bytes. Absent names may take a twentieth of them.
pub(crate) fn names_within(bytes_max: usize, root: Stat, known: Freshness) -> NameTree {
    let mut names = NameTree::new(root, known);
    names.limit_negatives((bytes_max / BYTES_PER_ABSENT).max(NAMES_MIN));
    names
}

/// The listings of a client that may use this many bytes. One long listing may exceed the bound until it is packed.
pub(crate) fn directories_within(bytes_max: usize) -> DirectoryCache {
    DirectoryCache::with_limit(Trim::within(bytes_max).entries_max * LONGEST_FACTOR)
}

/// The inactive listings of a client that may use this many bytes.
pub(crate) fn inactive_within(bytes_max: usize) -> InactiveListings {
    InactiveListings::with_limit((bytes_max / INACTIVE_PART).clamp(INACTIVE_BYTES_MIN, INACTIVE_BYTES_MAX))
}

/// Memory use, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatus {
    /// Nodes, with their names.
    pub names: usize,
    /// Listings, those of open directories among them.
    pub listings: usize,
    /// Packed listings.
    pub packed: usize,
    /// Other memory of the process, as of the last measurement: tables, buffers, and freed memory.
    pub other: usize,
}

impl MemoryStatus {
    /// All of it.
    pub fn all(&self) -> usize {
        self.names + self.listings + self.packed + self.other
    }
}
