//! The entries of an open directory; long listings are mostly packed.
//!
//! An entry takes about 250 bytes, packed 30 to 50. A program that reads a directory of a million files needs
//! only one page of entries at a time, in order.

use crate::inactive_listings::PackedListing;
use std::sync::Arc;
use wirefs_op::{DirEntry, Time};

/// The maximal number of entries that are not packed.
const PLAIN_MAX: usize = 4096;
/// The number of entries in a packed page.
const PAGE_ENTRIES: usize = 1024;
/// The memory of an unpacked entry, in bytes.
pub const ENTRY_BYTES: usize = 250;

/// Consecutive unpacked entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListingPage {
    /// The index of the first entry in the whole listing.
    pub first: usize,
    /// The entries.
    pub entries: Arc<Vec<DirEntry>>,
}

/// A listing that grows at its end and is read in pages.
///
/// INVARIANT: each packed page holds [`PAGE_ENTRIES`] entries.
#[derive(Clone, Debug, Default)]
pub struct LongListing {
    packed: Vec<PackedListing>,
    packed_bytes: usize,
    /// The entries after the packed pages.
    rest: Arc<Vec<DirEntry>>,
    /// The packed page that was read last.
    read: Option<ListingPage>,
}

impl From<Arc<Vec<DirEntry>>> for LongListing {
    /// Wraps a shared listing; it is copied when entries are added.
    fn from(rest: Arc<Vec<DirEntry>>) -> LongListing {
        LongListing { rest, ..LongListing::default() }
    }
}

impl LongListing {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.packed.len() * PAGE_ENTRIES + self.rest.len()
    }

    /// Returns true if the listing is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the approximate memory in bytes, without shared entries.
    pub fn bytes(&self) -> usize {
        let rest = if self.shared().is_some() { 0 } else { self.rest.len() };
        self.packed_bytes() + rest * ENTRY_BYTES
    }

    /// Returns the approximate memory of the packed pages and the page that was read last, in bytes.
    pub fn packed_bytes(&self) -> usize {
        let read = self.read.as_ref().map_or(0, |page| page.entries.len());
        self.packed_bytes + read * ENTRY_BYTES
    }

    /// Returns the unpacked entries, which may be shared.
    pub fn plain(&self) -> &Arc<Vec<DirEntry>> {
        &self.rest
    }

    /// Returns the unpacked entries if they are shared.
    pub fn shared(&self) -> Option<&Arc<Vec<DirEntry>>> {
        (Arc::strong_count(&self.rest) > 1).then_some(&self.rest)
    }

    /// Appends entries.
    ///
    /// # Cost
    /// Packs full pages once the listing is long.
    pub fn append(&mut self, new: &mut Vec<DirEntry>) {
        Arc::make_mut(&mut self.rest).append(new);
        let plain_max = if self.packed.is_empty() { PLAIN_MAX } else { PAGE_ENTRIES };
        if self.rest.len() <= plain_max {
            return;
        }
        let mut pages = self.rest.chunks_exact(PAGE_ENTRIES);
        for page in pages.by_ref() {
            let packed = pack(page);
            self.packed_bytes += packed.as_ref().map_or(0, PackedListing::cost);
            self.packed.extend(packed);
        }
        self.rest = Arc::new(pages.remainder().to_vec());
    }

    /// Returns the page with the entry at `index`, or an empty page past the end. `None`: a packed page is
    /// corrupt.
    pub fn page(&mut self, index: usize) -> Option<ListingPage> {
        let number = index / PAGE_ENTRIES;
        let Some(packed) = self.packed.get(number) else {
            let first = self.packed.len() * PAGE_ENTRIES;
            return Some(ListingPage { first, entries: Arc::clone(&self.rest) });
        };
        let first = number * PAGE_ENTRIES;
        if self.read.as_ref().is_none_or(|page| page.first != first) {
            let (entries, _) = packed.unpack()?;
            self.read = Some(ListingPage { first, entries: Arc::new(entries) });
        }
        self.read.clone()
    }

    /// Returns all entries, if they are at most `most`.
    pub fn whole(&self, most: usize) -> Option<Vec<DirEntry>> {
        if self.len() > most {
            return None;
        }
        let mut whole = Vec::with_capacity(self.len());
        for packed in &self.packed {
            whole.extend(packed.unpack()?.0);
        }
        whole.extend(self.rest.iter().cloned());
        Some(whole)
    }
}

/// Packs entries; `None` for an empty slice.
fn pack(entries: &[DirEntry]) -> Option<PackedListing> {
    let first = entries.first()?;
    let names = entries.iter().map(|entry| (entry.name.as_slice(), entry.stat));
    // The attributes of the directory do not matter here: those of the entries are encoded as differences to
    // them.
    Some(PackedListing::new(&first.stat, names, Time(0), false))
}

#[cfg(test)]
mod tests;
