//! Listings that nobody uses at the moment, packed: those of directories that the kernel forgot, and those from before a
//! restart.
//!
//! They are packed as a stream of a subtree carries them, which takes 30 to 50 bytes for an entry instead of 250, and goes to
//! disk as it is.

use crate::coherency::{Coherency, Freshness};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use wirefs_op::find_listing::{FindDirectory, FindReader, FindRecord, FindWriter};
use wirefs_op::{DirEntry, FileId, Stat, Time, TreePath};

/// Packed bytes, at most: two million entries or so.
pub const INACTIVE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What one listing costs beyond its packed bytes, in bytes.
const LISTING_OVERHEAD_BYTES: usize = 160;
/// Names that were taken back singly, of one listing, at most; past it the listing goes.
const INVALIDATED_MAX: usize = 64;

/// What is known of a directory's names, packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedListing {
    data: Bytes,
    at: Time,
    /// Names that were taken back since.
    invalidated: Vec<Vec<u8>>,
    /// Tells this one from an earlier one of the same directory.
    serial: u64,
}

impl PackedListing {
    /// Packs names that are leased and were asked for at `at`; `stat` is the directory's. `is_complete`: it has no others.
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

    /// Takes one that was packed before.
    pub fn from_data(data: Bytes, at: Time) -> PackedListing {
        PackedListing { data, at, invalidated: Vec::new(), serial: 0 }
    }

    /// The packed bytes, to be kept elsewhere; none where single names were taken back.
    pub fn into_data(self) -> Option<Bytes> {
        self.invalidated.is_empty().then_some(self.data)
    }

    /// As of when it is known.
    pub fn freshness(&self) -> Freshness {
        Freshness { at: self.at, leased: true }
    }

    /// The names that were taken back.
    pub fn invalidated(&self) -> &[Vec<u8>] {
        &self.invalidated
    }

    /// The entries, and whether they are all; none when the bytes are not what was packed.
    pub fn unpack(&self) -> Option<(Vec<DirEntry>, bool)> {
        let mut records = FindReader::new(self.data.clone());
        let Some(Ok(FindRecord::Directory(directory))) = records.next() else { return None };
        let entry = |record| match record {
            Ok(FindRecord::Entry(entry)) => Some(DirEntry { name: entry.name, next: 1, stat: entry.stat }),
            Ok(FindRecord::Directory(_)) | Err(_) => None,
        };
        Some((records.map(entry).collect::<Option<_>>()?, directory.ends))
    }

    /// Whether it has all entries, none of which was taken back.
    fn is_whole(&self) -> bool {
        let first = FindReader::new(self.data.clone()).next();
        self.invalidated.is_empty()
            && matches!(first, Some(Ok(FindRecord::Directory(directory))) if directory.ends)
    }

    /// Bytes that it takes.
    pub(crate) fn cost(&self) -> usize {
        self.data.len() + LISTING_OVERHEAD_BYTES
    }
}

/// Packed listings by directory.
///
/// INVARIANT: all are leased, and what was recalled of them since is known in `invalidated` or by who unpacks them.
#[derive(Debug)]
pub struct InactiveListings {
    listings: BTreeMap<FileId, PackedListing>,
    /// The oldest first; some may be gone.
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
    /// A shelf for so many bytes.
    pub fn with_limit(bytes_max: usize) -> InactiveListings {
        InactiveListings { listings: BTreeMap::new(), order: VecDeque::new(), bytes: 0, bytes_max, serial: 0 }
    }

    /// Puts a listing there; the oldest ones make room.
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

    /// Takes a listing off.
    pub fn take(&mut self, dir: FileId) -> Option<PackedListing> {
        let packed = self.listings.remove(&dir)?;
        self.bytes -= packed.cost();
        Some(packed)
    }

    /// Whether all of a directory's names are there, and may be believed.
    pub fn has_whole(&self, dir: FileId, coherency: &Coherency) -> bool {
        self.listings
            .get(&dir)
            .is_some_and(|packed| coherency.is_valid(packed.freshness()) && packed.is_whole())
    }

    /// A name in a directory was taken back.
    pub fn invalidate_name(&mut self, dir: FileId, name: &[u8]) {
        let Some(packed) = self.listings.get_mut(&dir) else { return };
        packed.invalidated.push(name.to_vec());
        if packed.invalidated.len() > INVALIDATED_MAX {
            self.take(dir);
        }
    }

    /// Takes off all, in the order of directories' ids.
    pub fn drain(&mut self) -> impl Iterator<Item = (FileId, PackedListing)> + use<> {
        self.order.clear();
        self.bytes = 0;
        std::mem::take(&mut self.listings).into_iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.listings.is_empty()
    }

    /// How many listings there are.
    pub fn len(&self) -> usize {
        self.listings.len()
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
