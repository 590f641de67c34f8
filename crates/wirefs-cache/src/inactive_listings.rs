//! The inactive list: packed listings of directories that are not in use, either released by the kernel or
//! loaded from the disk cache.
//!
//! The format is that of a subtree stream (Tfind): 30 to 50 bytes per entry instead of 250. The disk cache
//! stores it unchanged.

use crate::coherency::{Coherency, Freshness};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use wirefs_op::find_listing::{FindDirectory, FindReader, FindRecord, FindWriter};
use wirefs_op::{DirEntry, FileId, Stat, Time, TreePath};

/// The limit of packed bytes: about two million entries.
pub const INACTIVE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The overhead of one listing beyond its packed bytes, in bytes.
const LISTING_OVERHEAD_BYTES: usize = 160;
/// The maximal number of invalidated names per listing; above it, the listing is removed.
const INVALIDATED_MAX: usize = 64;

/// The packed names of one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedListing {
    data: Bytes,
    at: Time,
    /// Names that were invalidated since.
    invalidated: Vec<Vec<u8>>,
    /// Distinguishes this listing from an earlier one of the same directory.
    serial: u64,
}

impl PackedListing {
    /// Packs leased names that were requested at `at`; `stat` is the directory's. `is_complete`: the
    /// directory has no other names.
    pub fn new<'a>(
        stat: &Stat,
        entries: impl Iterator<Item = (&'a [u8], Stat)>,
        at: Time,
        is_complete: bool,
    ) -> PackedListing {
        let mut writer = FindWriter::new(usize::MAX);
        let directory = FindDirectory { path: TreePath::root(), stat: *stat, begins: true, ends: false };
        writer.directory(&directory);
        for (name, stat) in entries {
            writer.entry(name, &stat, None);
        }
        if is_complete {
            writer.end_directory();
        }
        PackedListing { data: writer.finish(), at, invalidated: Vec::new(), serial: 0 }
    }

    /// Wraps bytes from an earlier [`into_data`](Self::into_data).
    pub fn from_data(data: Bytes, at: Time) -> PackedListing {
        PackedListing { data, at, invalidated: Vec::new(), serial: 0 }
    }

    /// Returns the packed bytes for the disk cache; `None` if names were invalidated.
    pub fn into_data(self) -> Option<Bytes> {
        self.invalidated.is_empty().then_some(self.data)
    }

    /// Returns the freshness of the listing.
    pub fn freshness(&self) -> Freshness {
        Freshness { at: self.at, leased: true }
    }

    /// Returns the invalidated names.
    pub fn invalidated(&self) -> &[Vec<u8>] {
        &self.invalidated
    }

    /// Returns the entries, and whether they are complete; `None` if the bytes are not a packed listing.
    pub fn unpack(&self) -> Option<(Vec<DirEntry>, bool)> {
        let mut records = FindReader::new(self.data.clone());
        let Some(Ok(FindRecord::Directory(directory))) = records.next() else { return None };
        let entry = |record| match record {
            Ok(FindRecord::Entry(entry)) => Some(DirEntry { name: entry.name, next: 1, stat: entry.stat }),
            Ok(FindRecord::Directory(_)) | Err(_) => None,
        };
        Some((records.map(entry).collect::<Option<_>>()?, directory.ends))
    }

    /// Returns true if the listing is complete and no name was invalidated.
    fn is_whole(&self) -> bool {
        let first = FindReader::new(self.data.clone()).next();
        self.invalidated.is_empty()
            && matches!(first, Some(Ok(FindRecord::Directory(directory))) if directory.ends)
    }

    /// Returns the memory of the listing in bytes.
    pub(crate) fn cost(&self) -> usize {
        self.data.len() + LISTING_OVERHEAD_BYTES
    }
}

/// Packed listings by directory.
///
/// INVARIANT: all are leased. Recalls since packing are in `invalidated`, or the caller that unpacks a
/// listing applies them.
#[derive(Debug)]
pub struct InactiveListings {
    listings: BTreeMap<FileId, PackedListing>,
    /// Oldest first; may contain removed listings.
    order: VecDeque<(FileId, u64)>,
    bytes: usize,
    bytes_max: usize,
    serial: u64,
}

impl Default for InactiveListings {
    fn default() -> InactiveListings {
        InactiveListings::with_limit(INACTIVE_BYTES_MAX)
    }
}

impl InactiveListings {
    /// Creates a list for at most `bytes_max` bytes.
    pub fn with_limit(bytes_max: usize) -> InactiveListings {
        InactiveListings { listings: BTreeMap::new(), order: VecDeque::new(), bytes: 0, bytes_max, serial: 0 }
    }

    /// Inserts a listing; evicts the oldest ones above the limit.
    pub fn put(&mut self, dir: FileId, mut packed: PackedListing) {
        self.take(dir);
        self.serial += 1;
        packed.serial = self.serial;
        self.bytes += packed.cost();
        self.order.push_back((dir, packed.serial));
        self.listings.insert(dir, packed);
        while self.bytes > self.bytes_max {
            let Some((oldest, serial)) = self.order.pop_front() else { return };
            if self.is_current(oldest, serial) {
                self.take(oldest);
            }
        }
        if self.order.len() > 2 * self.listings.len() + 16 {
            let listings = &self.listings;
            self.order.retain(|(dir, serial)| {
                listings.get(dir).is_some_and(|directory| directory.serial == *serial)
            });
        }
    }

    fn is_current(&self, dir: FileId, serial: u64) -> bool {
        self.listings.get(&dir).is_some_and(|packed| packed.serial == serial)
    }

    /// Removes and returns a listing.
    pub fn take(&mut self, dir: FileId) -> Option<PackedListing> {
        let packed = self.listings.remove(&dir)?;
        self.bytes -= packed.cost();
        Some(packed)
    }

    /// Returns true if the complete and valid listing of a directory is present.
    pub fn has_whole(&self, dir: FileId, coherency: &Coherency) -> bool {
        self.listings
            .get(&dir)
            .is_some_and(|packed| coherency.is_valid(packed.freshness()) && packed.is_whole())
    }

    /// Invalidates a name in a directory.
    pub fn invalidate_name(&mut self, dir: FileId, name: &[u8]) {
        let Some(packed) = self.listings.get_mut(&dir) else { return };
        packed.invalidated.push(name.to_vec());
        if packed.invalidated.len() > INVALIDATED_MAX {
            self.take(dir);
        }
    }

    /// Removes and returns all listings, ordered by directory id.
    pub fn drain(&mut self) -> impl Iterator<Item = (FileId, PackedListing)> + use<> {
        self.order.clear();
        self.bytes = 0;
        std::mem::take(&mut self.listings).into_iter()
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.listings.is_empty()
    }

    /// Returns the number of listings.
    pub fn len(&self) -> usize {
        self.listings.len()
    }

    /// Returns their size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
