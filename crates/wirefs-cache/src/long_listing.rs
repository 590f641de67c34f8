//! The entries of a directory that is open, of which a long one keeps most packed.
//!
//! An entry takes about 250 bytes, packed 30 to 50: who walks a directory of a million files needs a page of them at a time, in the
//! order in which they came.

use crate::inactive_listings::PackedListing;
use std::sync::Arc;
use wirefs_op::{DirEntry, Time};

/// Up to so many entries stay as they are.
const PLAIN_MAX: usize = 4096;
/// Entries that are packed, and unpacked, together.
const PAGE_ENTRIES: usize = 1024;
/// What an entry takes that is not packed, in bytes.
pub const ENTRY_BYTES: usize = 250;

/// Entries that are unpacked, and how many there are before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListingPage {
    /// The number of the first of them in the whole listing.
    pub first: usize,
    /// They themselves.
    pub entries: Arc<Vec<DirEntry>>,
}

/// A listing to which entries are added at its end, and of which pages are read.
///
/// INVARIANT: each packed page holds [`PAGE_ENTRIES`] entries.
#[derive(Clone, Debug, Default)]
pub struct LongListing {
    packed: Vec<PackedListing>,
    packed_bytes: usize,
    /// What follows the packed pages; all of it, where there are none.
    rest: Arc<Vec<DirEntry>>,
    /// The packed page that was read last.
    read: Option<ListingPage>,
}

impl From<Arc<Vec<DirEntry>>> for LongListing {
    /// Takes a listing that is known to others too: it stays as it is until something is added.
    fn from(rest: Arc<Vec<DirEntry>>) -> LongListing {
        LongListing { rest, ..LongListing::default() }
    }
}

impl LongListing {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.packed.len() * PAGE_ENTRIES + self.rest.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many bytes they take, without those that are shared with others.
    pub fn bytes(&self) -> usize {
        let rest = if self.shared().is_some() { 0 } else { self.rest.len() };
        self.packed_bytes() + rest * ENTRY_BYTES
    }

    /// About how many bytes those take that are packed, with the page of them that was read last.
    pub fn packed_bytes(&self) -> usize {
        let read = self.read.as_ref().map_or(0, |page| page.entries.len());
        self.packed_bytes + read * ENTRY_BYTES
    }

    /// Those that are not packed; they may be shared with others.
    pub fn plain(&self) -> &Arc<Vec<DirEntry>> {
        &self.rest
    }

    /// Those that are shared with others.
    pub fn shared(&self) -> Option<&Arc<Vec<DirEntry>>> {
        (Arc::strong_count(&self.rest) > 1).then_some(&self.rest)
    }

    /// Adds entries behind all others.
    ///
    /// # Cost
    /// Packs them, where there are many already.
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

    /// The entries from some number before or at `index` on; with none beyond the end. `None`: what was packed cannot be unpacked.
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

    /// All entries, if they are `most` or fewer.
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

/// Packs entries. None when there are none.
fn pack(entries: &[DirEntry]) -> Option<PackedListing> {
    let first = entries.first()?;
    let told = entries.iter().map(|entry| (entry.name.as_slice(), entry.stat));
    // Whose attributes go before them does not matter: they are told as a difference to those.
    Some(PackedListing::new(&first.stat, told, Time(0), false))
}

#[cfg(test)]
mod tests;
