//! The listings that a kernel caches of directories that it reads without opening them, as `fs/fuse/readdir.c` does.
//!
//! Entries are appended if their position follows the last one, and if the page for them is present. An empty reply at the end completes the
//! listing. A complete listing serves later reads from the beginning, unless an own change came between or a page is missing: then it starts
//! again. Change times, which also make a kernel start again, are omitted, because nothing may depend on them.

use std::collections::{BTreeMap, BTreeSet};
use wirefs_client::call::{Listed, TreeNodeId};
use wirefs_op::FileId;

/// Entries per page: few, so that a listing has several pages.
const PAGE_ENTRIES: usize = 2;

/// An entry: name, id, and the next position.
type Entry = (Vec<u8>, FileId, u64);

#[derive(Debug, Default)]
struct CachedListing {
    entries: Vec<Entry>,
    /// The present pages.
    pages: BTreeSet<usize>,
    position: u64,
    is_whole: bool,
    /// The number of own changes of the directory when the listing began.
    began: u64,
    /// The present number of own changes.
    changes: u64,
}

impl CachedListing {
    fn reset(&mut self) {
        *self = CachedListing { changes: self.changes, ..CachedListing::default() };
    }

    fn has_all(&self) -> bool {
        (0..self.entries.len().div_ceil(PAGE_ENTRIES)).all(|page| self.pages.contains(&page))
    }

    fn append(&mut self, at: u64, entry: &Listed) {
        if self.is_whole || at != self.position {
            return;
        }
        let (page, place) = (self.entries.len() / PAGE_ENTRIES, self.entries.len() % PAGE_ENTRIES);
        if place == 0 {
            self.pages.insert(page);
        } else if !self.pages.contains(&page) {
            return;
        }
        // The model has one file system and never reuses an inode number.
        let id = FileId { fs: 0, ino: entry.ino, generation: 1 };
        self.entries.push((entry.name.clone(), id, entry.next));
        self.position = entry.next;
    }
}

/// The listings of one kernel.
#[derive(Debug, Default)]
pub(super) struct Listings(BTreeMap<TreeNodeId, CachedListing>);

impl Listings {
    /// Returns the entries after a position from the cache.
    pub(super) fn read(&mut self, dir: TreeNodeId, position: u64) -> Option<Vec<Entry>> {
        let gathered = self.0.entry(dir).or_default();
        if gathered.is_whole && (!gathered.has_all() || position == 0 && gathered.began != gathered.changes) {
            gathered.reset();
        }
        if !gathered.is_whole {
            if position == 0 && gathered.entries.is_empty() {
                gathered.began = gathered.changes;
            }
            return None;
        }
        let begin = match position {
            0 => 0,
            _ => 1 + gathered.entries.iter().position(|(_, _, next)| *next == position)?,
        };
        gathered.entries.get(begin..).map(<[Entry]>::to_vec)
    }

    /// Takes the reply to a read at a position. `is_uncached`: a change of the directory was pending; a kernel prevents that, so nothing is
    /// appended.
    pub(super) fn takes(&mut self, dir: TreeNodeId, position: u64, listed: &[Listed], is_uncached: bool) {
        let gathered = self.0.entry(dir).or_default();
        if listed.is_empty() {
            gathered.is_whole |= gathered.position == position;
        }
        if is_uncached {
            return;
        }
        let mut at = position;
        for entry in listed {
            gathered.append(at, entry);
            at = entry.next;
        }
    }

    /// Drops the pages.
    pub(super) fn drop_pages(&mut self, dir: TreeNodeId) {
        if let Some(gathered) = self.0.get_mut(&dir) {
            gathered.pages.clear();
        }
    }

    /// Records an own change of names in a directory.
    pub(super) fn changed(&mut self, dir: TreeNodeId) {
        self.0.entry(dir).or_default().changes += 1;
    }

    pub(super) fn forget(&mut self, dir: TreeNodeId) {
        self.0.remove(&dir);
    }

    /// Returns the meaning of a name in the listing that a read from the beginning would get.
    pub(super) fn believed(&self, dir: TreeNodeId, name: &[u8]) -> Option<Option<FileId>> {
        let is_returned = |gathered: &&CachedListing| {
            gathered.is_whole && gathered.has_all() && gathered.began == gathered.changes
        };
        let gathered = self.0.get(&dir).filter(is_returned)?;
        Some(gathered.entries.iter().find(|(listed, ..)| listed == name).map(|(_, id, _)| *id))
    }
}
