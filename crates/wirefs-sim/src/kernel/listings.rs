//! The listings that a kernel gathers of directories that it reads without opening them, as `fs/fuse/readdir.c` does.
//!
//! What is read is appended if its position is the one behind the last that there is, and if the page is there that it goes to. When nothing
//! is read at that position, the listing is whole, and serves who reads from the beginning, unless own changes came between or a page of
//! it is missing: then it begins anew. Times of change, by which a kernel begins anew too, are left out: nothing may depend on them.

use std::collections::{BTreeMap, BTreeSet};
use wirefs_client::call::{Listed, TreeNodeId};
use wirefs_op::FileId;

/// A page holds so many entries here: so few that a listing has several.
const PAGE_ENTRIES: usize = 2;

/// What a name is in a listing, and the position behind it.
type Entry = (Vec<u8>, FileId, u64);

#[derive(Debug, Default)]
struct Gathered {
    entries: Vec<Entry>,
    /// The pages that are there.
    pages: BTreeSet<usize>,
    position: u64,
    is_whole: bool,
    /// Own changes of the directory when it was begun.
    began: u64,
    /// And by now.
    changes: u64,
}

impl Gathered {
    fn reset(&mut self) {
        *self = Gathered { changes: self.changes, ..Gathered::default() };
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
        // The model has one file system, and uses no number twice.
        let id = FileId { fs: 0, ino: entry.ino, generation: 1 };
        self.entries.push((entry.name.clone(), id, entry.next));
        self.position = entry.next;
    }
}

/// Those of one kernel.
#[derive(Debug, Default)]
pub(super) struct Listings(BTreeMap<TreeNodeId, Gathered>);

impl Listings {
    /// What follows a position, if the kernel answers that by itself.
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

    /// An answer is there to who read from a position on. `is_vain`: a change of the directory was under way, which a kernel does not let
    /// happen; what comes then is not appended.
    pub(super) fn takes(&mut self, dir: TreeNodeId, position: u64, listed: &[Listed], is_vain: bool) {
        let gathered = self.0.entry(dir).or_default();
        if listed.is_empty() {
            gathered.is_whole |= gathered.position == position;
        }
        if is_vain {
            return;
        }
        let mut at = position;
        for entry in listed {
            gathered.append(at, entry);
            at = entry.next;
        }
    }

    /// Its pages are dropped, and nothing else.
    pub(super) fn drop_pages(&mut self, dir: TreeNodeId) {
        if let Some(gathered) = self.0.get_mut(&dir) {
            gathered.pages.clear();
        }
    }

    /// An own change of names in a directory is done.
    pub(super) fn changed(&mut self, dir: TreeNodeId) {
        self.0.entry(dir).or_default().changes += 1;
    }

    pub(super) fn forget(&mut self, dir: TreeNodeId) {
        self.0.remove(&dir);
    }

    /// What a name is by a listing that who reads from the beginning would be told.
    pub(super) fn believed(&self, dir: TreeNodeId, name: &[u8]) -> Option<Option<FileId>> {
        let is_told = |gathered: &&Gathered| {
            gathered.is_whole && gathered.has_all() && gathered.began == gathered.changes
        };
        let gathered = self.0.get(&dir).filter(is_told)?;
        Some(gathered.entries.iter().find(|(listed, ..)| listed == name).map(|(_, id, _)| *id))
    }
}
