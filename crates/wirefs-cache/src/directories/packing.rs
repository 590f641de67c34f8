//! Listings that go to the shelf and come back.

use super::outdated::Outdated;
use super::{Directory, DirectoryCache, ENTRIES_MAX};
use crate::coherency::{Coherency, Freshness};
use crate::inactive_listings::PackedListing;
use crate::long_listing::ENTRY_BYTES;
use crate::name_tree::TreeNodeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_op::{DirEntry, Stat};

/// What a name takes that is known singly, in bytes.
const SINGLE_BYTES: usize = 400;

impl Default for DirectoryCache {
    fn default() -> DirectoryCache {
        DirectoryCache::with_limit(ENTRIES_MAX)
    }
}

impl DirectoryCache {
    /// Packs what is leased of a directory's names; `stat` is the directory's, and `fresh` tells what is known of an entry's object
    /// beyond it. None when nothing is.
    pub fn pack(
        &mut self,
        dir: TreeNodeId,
        stat: &Stat,
        coherency: &Coherency,
        fresh: impl Fn(&Stat) -> Option<Stat>,
    ) -> Option<PackedListing> {
        let directory = self.cached.get_mut(&dir)?;
        let wholly = directory.freshness().filter(|freshness| coherency.is_leased(*freshness));
        let freshness = match wholly {
            Some(freshness) => freshness,
            None => directory.least_of(coherency)?,
        };
        let before = directory.listing.len();
        if directory.listed.is_some() {
            directory.merge();
        }
        let (directory, outdated) = (&*directory, &self.outdated);
        self.entries = (self.entries + directory.listing.len()).saturating_sub(before);
        let entries = directory.entries(coherency).map(|(name, stat)| {
            let leased = stat.leased && !outdated.is_since(stat.id, freshness.at);
            let told = Stat { leased, ..*stat };
            (name, fresh(&told).unwrap_or(told))
        });
        Some(PackedListing::new(stat, entries, freshness.at, wholly.is_some()))
    }

    /// Takes back what was packed, where nothing is known of the directory's names.
    pub fn unpack(&mut self, dir: TreeNodeId, packed: &PackedListing, coherency: &Coherency) {
        let freshness = packed.freshness();
        if self.cached.contains_key(&dir) || !coherency.is_leased(freshness) {
            return;
        }
        let Some((entries, is_complete)) = packed.unpack() else { return };
        if is_complete {
            self.store(dir, entries, freshness, coherency);
        } else {
            for entry in entries {
                self.record_lookup(dir, &entry.name, Some(&entry.stat), freshness, coherency);
            }
        }
        for name in packed.invalidated() {
            self.invalidate_name(dir, name);
        }
    }

    /// Whether something is known of a directory's names.
    pub fn is_cached(&self, dir: TreeNodeId) -> bool {
        self.cached.contains_key(&dir)
    }

    /// Entries in all listings.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Listings of so many entries together.
    pub fn with_limit(entries_max: usize) -> DirectoryCache {
        DirectoryCache {
            cached: BTreeMap::new(),
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
    pub fn is_current(&self, dir: TreeNodeId, listing: &Arc<Vec<DirEntry>>) -> bool {
        self.cached.get(&dir).is_some_and(|directory| Arc::ptr_eq(&directory.listing, listing))
    }

    /// The directories that were listed, the oldest listing first.
    pub fn oldest_first(&self) -> Vec<TreeNodeId> {
        let listed = self.cached.iter().filter_map(|(dir, directory)| Some((directory.listed?.at, *dir)));
        let mut listed: Vec<_> = listed.collect();
        listed.sort_unstable();
        listed.into_iter().map(|(_, dir)| dir).collect()
    }

    /// Forgets what is known of a directory's names; what this client changed of late is remembered.
    pub fn evict(&mut self, dir: TreeNodeId) {
        self.drop_listing(dir);
    }

    /// The directories of which something is known.
    pub fn cached(&self) -> Vec<TreeNodeId> {
        self.cached.keys().copied().collect()
    }
}

impl Directory {
    /// As of when the oldest of the names is known that are leased.
    fn least_of(&self, coherency: &Coherency) -> Option<Freshness> {
        let single = self.singles.values().flatten().copied();
        single.chain(self.listed).filter(|freshness| coherency.is_leased(*freshness)).reduce(Freshness::and)
    }

    /// The names that are there and leased.
    fn entries(&self, coherency: &Coherency) -> impl Iterator<Item = (&[u8], &Stat)> {
        let listed = self.listing.iter().map(|entry| (entry.name.as_slice(), &entry.stat));
        let listed = listed.filter(|(name, _)| !self.patches.contains_key(*name));
        let single = self.patches.iter().filter_map(|(name, stat)| Some((name.as_slice(), stat.as_ref()?)));
        listed.chain(single).filter(|(name, _)| {
            self.freshness_of(name).is_some_and(|freshness| coherency.is_leased(freshness))
        })
    }
}

#[cfg(test)]
mod tests;
