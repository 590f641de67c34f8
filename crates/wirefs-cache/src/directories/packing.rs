//! Listings that go to the shelf and come back.

use super::outdated::Outdated;
use super::{Directories, Directory, ENTRIES_MAX};
use crate::long_listing::ENTRY_BYTES;
use crate::names::TreeNodeId;
use crate::shelf::Packed;
use crate::trust::{Known, Trust};
use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_op::{DirEntry, Stat};

/// What a name takes that is known singly, in bytes.
const SINGLE_BYTES: usize = 400;

impl Default for Directories {
    fn default() -> Directories {
        Directories::with_limit(ENTRIES_MAX)
    }
}

impl Directories {
    /// Packs what is leased of a directory's names; `stat` is the directory's, and `fresh` tells what is known of an entry's object
    /// beyond it. None when nothing is.
    pub fn pack(
        &mut self,
        dir: TreeNodeId,
        stat: &Stat,
        trust: &Trust,
        fresh: impl Fn(&Stat) -> Option<Stat>,
    ) -> Option<Packed> {
        let directory = self.known.get_mut(&dir)?;
        let wholly = directory.wholly_known().filter(|known| trust.holds(*known));
        let known = match wholly {
            Some(known) => known,
            None => directory.least_of(trust)?,
        };
        let before = directory.listing.len();
        if directory.known.is_some() {
            directory.merge();
        }
        let (directory, outdated) = (&*directory, &self.outdated);
        self.entries = (self.entries + directory.listing.len()).saturating_sub(before);
        let entries = directory.entries(trust).map(|(name, stat)| {
            let leased = stat.leased && !outdated.is_since(stat.id, known.at);
            let told = Stat { leased, ..*stat };
            (name, fresh(&told).unwrap_or(told))
        });
        Some(Packed::new(stat, entries, known.at, wholly.is_some()))
    }

    /// Takes back what was packed, where nothing is known of the directory's names.
    pub fn unpack(&mut self, dir: TreeNodeId, packed: &Packed, trust: &Trust) {
        let known = packed.known();
        if self.known.contains_key(&dir) || !trust.holds(known) {
            return;
        }
        let Some((entries, is_complete)) = packed.unpack() else { return };
        if is_complete {
            self.store(dir, entries, known, trust);
        } else {
            for entry in entries {
                self.found(dir, &entry.name, Some(&entry.stat), known, trust);
            }
        }
        for name in packed.doubted() {
            self.doubt_name(dir, name);
        }
    }

    /// Whether something is known of a directory's names.
    pub fn is_known(&self, dir: TreeNodeId) -> bool {
        self.known.contains_key(&dir)
    }

    /// Entries in all listings.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Listings of so many entries together.
    pub fn with_limit(entries_max: usize) -> Directories {
        Directories {
            known: BTreeMap::new(),
            recent: BTreeMap::new(),
            outdated: Outdated::default(),
            singles: 0,
            entries: 0,
            entries_max,
        }
    }

    /// How many entries a listing may have that is remembered.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// About how many bytes they take, with the names that are known singly.
    pub fn bytes(&self) -> usize {
        self.entries * ENTRY_BYTES + self.singles * SINGLE_BYTES
    }

    /// Whether this is what is known of a directory's names, so that it counts already.
    pub fn counts(&self, dir: TreeNodeId, listing: &Arc<Vec<DirEntry>>) -> bool {
        self.known.get(&dir).is_some_and(|directory| Arc::ptr_eq(&directory.listing, listing))
    }

    /// The directories that were listed, the oldest listing first.
    pub fn by_age(&self) -> Vec<TreeNodeId> {
        let listed = self.known.iter().filter_map(|(dir, directory)| Some((directory.known?.at, *dir)));
        let mut listed: Vec<_> = listed.collect();
        listed.sort_unstable();
        listed.into_iter().map(|(_, dir)| dir).collect()
    }

    /// Forgets what is known of a directory's names; what this client changed of late is remembered.
    pub fn forget(&mut self, dir: TreeNodeId) {
        self.drop_listing(dir);
    }

    /// The directories of which something is known.
    pub fn known(&self) -> Vec<TreeNodeId> {
        self.known.keys().copied().collect()
    }
}

impl Directory {
    /// As of when the oldest of the names is known that are leased.
    fn least_of(&self, trust: &Trust) -> Option<Known> {
        let single = self.singly.values().flatten().copied();
        single.chain(self.known).filter(|known| trust.holds(*known)).reduce(Known::and)
    }

    /// The names that are there and leased.
    fn entries(&self, trust: &Trust) -> impl Iterator<Item = (&[u8], &Stat)> {
        let listed = self.listing.iter().map(|entry| (entry.name.as_slice(), &entry.stat));
        let listed = listed.filter(|(name, _)| !self.patches.contains_key(*name));
        let single = self.patches.iter().filter_map(|(name, stat)| Some((name.as_slice(), stat.as_ref()?)));
        listed.chain(single).filter(|(name, _)| self.known(name).is_some_and(|known| trust.holds(known)))
    }
}

#[cfg(test)]
mod tests;
