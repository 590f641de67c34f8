//! Packing listings for the inactive list, unpacking them, and the size limits.

use super::outdated::Outdated;
use super::{Directory, DirectoryCache, ENTRIES_MAX};
use crate::coherency::{Coherency, Freshness};
use crate::inactive_listings::PackedListing;
use crate::long_listing::ENTRY_BYTES;
use crate::name_tree::TreeNodeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_op::{DirEntry, Stat};

/// The memory of a single name, in bytes.
const SINGLE_BYTES: usize = 400;

impl Default for DirectoryCache {
    fn default() -> DirectoryCache {
        DirectoryCache::with_limit(ENTRIES_MAX)
    }
}

impl DirectoryCache {
    /// Packs the leased names of a directory. `stat` is the directory's; `fresh` returns newer attributes of
    /// an entry's object, if cached. Returns `None` if nothing is leased.
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
            None => directory.oldest_leased(coherency)?,
        };
        let before = directory.listing.len();
        if directory.listed.is_some() {
            directory.merge();
        }
        let (directory, outdated) = (&*directory, &self.outdated);
        self.entries = (self.entries + directory.listing.len()).saturating_sub(before);
        let entries = directory.entries(coherency).map(|(name, stat)| {
            let leased = stat.leased && !outdated.is_since(stat.id, freshness.at);
            let cached = Stat { leased, ..*stat };
            (name, fresh(&cached).unwrap_or(cached))
        });
        Some(PackedListing::new(stat, entries, freshness.at, wholly.is_some()))
    }

    /// Restores a packed listing, if nothing newer is cached for the directory.
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

    /// Returns true if any name of the directory is cached.
    pub fn is_cached(&self, dir: TreeNodeId) -> bool {
        self.cached.contains_key(&dir)
    }

    /// Returns the number of entries in all listings.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Creates a cache for at most `entries_max` entries.
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

    /// Returns the maximal number of entries of one cached listing.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Returns the approximate memory in bytes, single names included.
    pub fn bytes(&self) -> usize {
        self.entries * ENTRY_BYTES + self.singles * SINGLE_BYTES
    }

    /// Returns true if `listing` is the cached listing itself, whose memory is counted already.
    pub fn is_current(&self, dir: TreeNodeId, listing: &Arc<Vec<DirEntry>>) -> bool {
        self.cached.get(&dir).is_some_and(|directory| Arc::ptr_eq(&directory.listing, listing))
    }

    /// Returns the listed directories, oldest listing first.
    pub fn oldest_first(&self) -> Vec<TreeNodeId> {
        let listed = self.cached.iter().filter_map(|(dir, directory)| Some((directory.listed?.at, *dir)));
        let mut listed: Vec<_> = listed.collect();
        listed.sort_unstable();
        listed.into_iter().map(|(_, dir)| dir).collect()
    }

    /// Evicts the names of a directory. Records of own changes remain.
    pub fn evict(&mut self, dir: TreeNodeId) {
        self.remove_listing(dir);
    }

    /// Returns the directories with cached names.
    pub fn cached(&self) -> Vec<TreeNodeId> {
        self.cached.keys().copied().collect()
    }
}

impl Directory {
    /// Returns the weakest freshness among the leased names.
    fn oldest_leased(&self, coherency: &Coherency) -> Option<Freshness> {
        let single = self.singles.values().flatten().copied();
        single.chain(self.listed).filter(|freshness| coherency.is_leased(*freshness)).reduce(Freshness::and)
    }

    /// Returns the existing names that are leased.
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
