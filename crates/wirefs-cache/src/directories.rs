//! Cached listings of whole directories, which also answer lookups of absent names without a request.

mod outdated;
mod packing;
mod single;

use crate::coherency::{Coherency, Freshness};
use crate::name_tree::TreeNodeId;
use outdated::Outdated;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wirefs_op::{DirEntry, FileId, Stat, Time};

/// The default limit of cached entries over all directories, and of one. An entry takes about 250 bytes.
const ENTRIES_MAX: usize = 262_144;

/// The maximal number of own changes per directory that are recorded for listings requested before them.
const RECENT_MAX: usize = 4096;
/// The time for which they are recorded. INVARIANT: a listing that was requested before a change arrives
/// within this time, or its carrier is lost.
const RECENT_FOR: Duration = Duration::from_secs(60);

/// The maximal number of single names cached for a directory without a listing.
const SINGLE_MAX: usize = 4096;

/// The result of an own change of a name.
#[derive(Clone, Copy, Debug)]
struct Own {
    stat: Option<Stat>,
    /// The freshness of the result. Other clients may have changed the name between the request and the
    /// reply.
    freshness: Freshness,
    answered: Time,
}

/// Recent own changes in one directory.
#[derive(Debug, Default)]
struct Recent {
    names: BTreeMap<Vec<u8>, Own>,
    /// Listings requested before this time are not cached: `names` lacks a change up to it.
    complete_since: Time,
    last: Time,
}

/// The result of a lookup in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CachedLookup {
    /// A valid entry.
    Entry(Box<CachedEntry>),
    /// A valid negative entry: the name does not exist.
    Negative(Freshness),
    /// The cache has no valid information.
    Miss,
}

/// A cached directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedEntry {
    /// The object's attributes.
    pub stat: Stat,
    /// The freshness of the entry: the name refers to this object.
    pub name: Freshness,
    /// The freshness of the attributes.
    pub attributes: Freshness,
}

#[derive(Debug)]
struct Directory {
    /// The entries, sorted by name.
    listing: Arc<Vec<DirEntry>>,
    /// Names that differ from the listing: own changes, and results of single lookups. `None`: a negative
    /// entry.
    patches: BTreeMap<Vec<u8>, Option<Stat>>,
    /// The freshness of all names that are not in `singles`. `None`: the directory was not listed.
    listed: Option<Freshness>,
    /// The freshness of names with one of their own: changes that were pending during the listing, and single
    /// lookups. `None`: the name was invalidated.
    singles: BTreeMap<Vec<u8>, Option<Freshness>>,
}

impl Directory {
    fn new(listing: Arc<Vec<DirEntry>>, listed: Option<Freshness>) -> Directory {
        Directory { listing, patches: BTreeMap::new(), listed, singles: BTreeMap::new() }
    }

    /// Returns the freshness of one name.
    fn freshness_of(&self, name: &[u8]) -> Option<Freshness> {
        self.singles.get(name).copied().unwrap_or(self.listed)
    }

    /// Returns the freshness of the whole directory.
    fn freshness(&self) -> Option<Freshness> {
        self.singles.values().try_fold(self.listed?, |all, freshness| Some(all.and((*freshness)?)))
    }

    /// Returns true if a listing of this freshness would be less useful than the cached one.
    fn is_better_than(&self, new: Freshness, coherency: &Coherency) -> bool {
        match self.listed {
            Some(all) if new.at < all.at => true,
            Some(_) => {
                !coherency.is_leased(new) && self.freshness().is_some_and(|all| coherency.is_leased(all))
            }
            None => !coherency.is_leased(new),
        }
    }

    /// Sets a name, independently of the listing, whose data may be older or newer.
    fn put(&mut self, name: &[u8], stat: Option<Stat>, freshness: Freshness) {
        self.patches.insert(name.to_vec(), stat);
        self.date(name, freshness);
    }

    fn date(&mut self, name: &[u8], freshness: Freshness) {
        let is_covered = |all: Freshness| freshness.at >= all.at && freshness.leased == all.leased;
        if self.listed.is_some_and(is_covered) {
            self.singles.remove(name);
        } else {
            self.singles.insert(name.to_vec(), Some(freshness));
        }
    }

    fn find(&self, name: &[u8]) -> Option<&Stat> {
        if let Some(patch) = self.patches.get(name) {
            return patch.as_ref();
        }
        let index = self.listing.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
        self.listing.get(index).map(|entry| &entry.stat)
    }

    /// Merges the single names into the listing.
    fn merge(&mut self) {
        if self.patches.is_empty() {
            return;
        }
        let patches = std::mem::take(&mut self.patches);
        let mut entries: Vec<DirEntry> =
            self.listing.iter().filter(|entry| !patches.contains_key(&entry.name)).cloned().collect();
        let added = patches.into_iter().filter_map(|(name, stat)| Some((name, stat?)));
        entries.extend(added.map(|(name, stat)| DirEntry { name, next: 1, stat }));
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.listing = Arc::new(entries);
    }
}

/// The cached listings of all directories.
#[derive(Debug)]
pub struct DirectoryCache {
    cached: BTreeMap<TreeNodeId, Directory>,
    recent: BTreeMap<TreeNodeId, Recent>,
    outdated: Outdated,
    /// The number of single names in directories without a listing.
    singles: usize,
    entries: usize,
    entries_max: usize,
}

impl DirectoryCache {
    /// Caches a complete listing and returns it sorted. Own changes since its request are applied to the
    /// cached copy. The listing is not cached if too many own changes were made, or if it exceeds the limit
    /// alone.
    pub fn store(
        &mut self,
        dir: TreeNodeId,
        mut entries: Vec<DirEntry>,
        freshness: Freshness,
        coherency: &Coherency,
    ) -> Arc<Vec<DirEntry>> {
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        let listing = Arc::new(entries);
        let recent = self.recent.get(&dir);
        let overtaken = recent.is_some_and(|recent| freshness.at <= recent.complete_since);
        let mut directory = Directory::new(Arc::clone(&listing), Some(freshness));
        for (name, own) in recent.into_iter().flat_map(|recent| &recent.names) {
            if freshness.at <= own.answered {
                directory.put(name, own.stat, own.freshness);
            }
        }
        let older = self.cached.get(&dir).is_some_and(|old| old.is_better_than(freshness, coherency));
        if !overtaken && !older && listing.len() <= self.entries_max {
            self.remove_listing(dir);
            self.entries += listing.len();
            self.cached.insert(dir, directory);
            self.shrink(dir);
        }
        listing
    }

    /// Looks up a name.
    pub fn find(&self, dir: TreeNodeId, name: &[u8], coherency: &Coherency) -> CachedLookup {
        let Some(directory) = self.cached.get(&dir) else { return CachedLookup::Miss };
        let Some(freshness) = directory.freshness_of(name).filter(|freshness| coherency.is_valid(*freshness))
        else {
            return CachedLookup::Miss;
        };
        match directory.find(name) {
            Some(stat) => {
                let attributes = self.attributes_freshness(stat, freshness.at);
                CachedLookup::Entry(Box::new(CachedEntry { stat: *stat, name: freshness, attributes }))
            }
            None => CachedLookup::Negative(freshness),
        }
    }

    /// Returns the freshness of attributes in a listing that was requested at `at`.
    pub fn attributes_freshness(&self, stat: &Stat, at: Time) -> Freshness {
        Freshness { at, leased: stat.leased && !self.outdated.is_since(stat.id, at) }
    }

    /// Voids the leases on the object's attributes in all listings requested before `now`.
    pub fn outdate(&mut self, id: FileId, now: Time) {
        self.outdated.note(id, now);
    }

    /// Returns the whole listing and its freshness, if it is valid.
    pub fn snapshot(
        &mut self,
        dir: TreeNodeId,
        coherency: &Coherency,
    ) -> Option<(Arc<Vec<DirEntry>>, Freshness)> {
        let directory = self.cached.get_mut(&dir)?;
        let freshness = directory.freshness().filter(|freshness| coherency.is_valid(*freshness))?;
        let before = directory.listing.len();
        directory.merge();
        self.entries = (self.entries + directory.listing.len()).saturating_sub(before);
        Some((Arc::clone(&directory.listing), freshness))
    }

    /// Records that this client created or changed `name`, by a request sent at `freshness.at` and answered
    /// at `now`.
    pub fn added(&mut self, dir: TreeNodeId, name: &[u8], stat: &Stat, freshness: Freshness, now: Time) {
        self.patch(dir, name, Own { stat: Some(*stat), freshness, answered: now });
    }

    /// Records that this client removed `name`, by a request sent at `freshness.at` and answered at `now`.
    pub fn removed(&mut self, dir: TreeNodeId, name: &[u8], freshness: Freshness, now: Time) {
        self.patch(dir, name, Own { stat: None, freshness, answered: now });
    }

    /// Updates the attributes of an entry in the cached listing, after an own change that was sent at `sent`.
    pub fn touched(&mut self, dir: TreeNodeId, name: &[u8], stat: &Stat, sent: Time) {
        let recent = self.recent.get_mut(&dir).and_then(|recent| recent.names.get_mut(name));
        if let Some(recent) = recent.and_then(|own| own.stat.as_mut()).filter(|recent| recent.id == stat.id) {
            *recent = *stat;
        }
        // The object may have lost this name, and another object may have it now.
        if let Some(directory) = self.cached.get_mut(&dir)
            && directory.find(name).is_some_and(|directory| directory.id == stat.id)
        {
            directory.patches.insert(name.to_vec(), Some(*stat));
            if let Some(freshness) = directory.freshness_of(name).filter(|freshness| sent < freshness.at) {
                directory.singles.insert(name.to_vec(), Some(Freshness { at: sent, ..freshness }));
            }
        }
    }

    /// Replaces the provisional id of an object that this client created as `name` by its id on the server.
    pub fn identified(&mut self, dir: TreeNodeId, name: &[u8], made: FileId, file: FileId) {
        let recent = self.recent.get_mut(&dir).and_then(|recent| recent.names.get_mut(name));
        if let Some(stat) = recent.and_then(|own| own.stat.as_mut()).filter(|stat| stat.id == made) {
            stat.id = file;
        }
        if let Some(directory) = self.cached.get_mut(&dir)
            && let Some(stat) = directory.find(name).filter(|stat| stat.id == made)
        {
            let stat = Stat { id: file, ..*stat };
            directory.patches.insert(name.to_vec(), Some(stat));
        }
    }

    /// Records the result of a single lookup; `stat` is `None` if the name does not exist. Without a listing,
    /// only a leased result is cached.
    pub fn record_lookup(
        &mut self,
        dir: TreeNodeId,
        name: &[u8],
        stat: Option<&Stat>,
        freshness: Freshness,
        coherency: &Coherency,
    ) {
        if self.is_changed_since(dir, name, freshness.at) {
            return;
        }
        if freshness.leased {
            self.make_room(dir);
        }
        let Some(directory) = self.cached.get_mut(&dir) else { return };
        let before = directory.freshness_of(name);
        if before.is_some_and(|before| freshness.at < before.at) {
            return;
        }
        let old = before.and(directory.find(name)).copied();
        let is_same = before.is_some() && old.map(Stat::unleased) == stat.copied().map(Stat::unleased);
        let is_newly_leased = stat.is_some_and(|stat| stat.leased) && old.is_some_and(|old| !old.leased);
        // With the new request time, an attribute recall since the old one would go unnoticed.
        let is_recalled = |old: &Stat| before.is_some_and(|before| self.outdated.is_since(old.id, before.at));
        let is_stale = old.is_some_and(|old| old.leased && is_recalled(&old));
        if !is_same || is_newly_leased || is_stale {
            directory.patches.insert(name.to_vec(), stat.copied());
        }
        let singles = directory.single_count();
        directory.date(name, coherency.renewed(before, freshness, is_same));
        self.singles = self.singles + directory.single_count() - singles;
        if directory.listed.is_none() && directory.singles.len() > SINGLE_MAX {
            self.remove_listing(dir);
        }
    }

    fn patch(&mut self, dir: TreeNodeId, name: &[u8], own: Own) {
        let recent = self.recent.entry(dir).or_default();
        recent.last = own.answered;
        if recent.names.len() >= RECENT_MAX {
            recent.names.clear();
            recent.complete_since = own.answered;
        }
        recent.names.insert(name.to_vec(), own);
        if own.freshness.leased {
            self.make_room(dir);
        }
        if let Some(directory) = self.cached.get_mut(&dir) {
            let singles = directory.single_count();
            directory.put(name, own.stat, own.freshness);
            self.singles = self.singles + directory.single_count() - singles;
            // After many patches, a new listing is cheaper.
            if directory.patches.len() > directory.listing.len() + SINGLE_MAX {
                if directory.listed.is_some() && directory.singles.values().all(Option::is_some) {
                    let before = directory.listing.len();
                    directory.merge();
                    self.entries = (self.entries + directory.listing.len()).saturating_sub(before);
                } else {
                    self.remove_listing(dir);
                }
            }
        }
    }

    /// Returns true if the cached listing is empty, valid or not.
    pub fn appears_empty(&self, dir: TreeNodeId) -> bool {
        self.cached.get(&dir).is_some_and(|directory| {
            let is_removed = |entry: &DirEntry| matches!(directory.patches.get(&entry.name), Some(None));
            directory.listed.is_some()
                && directory.patches.values().all(Option::is_none)
                && directory.listing.iter().all(is_removed)
        })
    }

    /// Returns true if this client may have changed `name` since `at`, so that a reply to an earlier request
    /// may be out of date.
    pub fn is_changed_since(&self, dir: TreeNodeId, name: &[u8], at: Time) -> bool {
        self.recent.get(&dir).is_some_and(|recent| {
            at <= recent.complete_since || recent.names.get(name).is_some_and(|own| at <= own.answered)
        })
    }

    /// Returns true if this client may have changed any name in the directory since `at`.
    pub fn has_changed_since(&self, dir: TreeNodeId, at: Time) -> bool {
        self.recent.get(&dir).is_some_and(|recent| at <= recent.last)
    }

    /// Returns true if the cached state of `name` was requested after `at`.
    pub fn is_fresher_than(&self, dir: TreeNodeId, name: &[u8], at: Time) -> bool {
        self.cached
            .get(&dir)
            .and_then(|directory| directory.freshness_of(name))
            .is_some_and(|freshness| at < freshness.at)
    }

    /// Records that this client changed names in the directory at `at`, with unknown results.
    pub fn changed(&mut self, dir: TreeNodeId, at: Time) {
        let recent = self.recent.entry(dir).or_default();
        recent.last = at;
        recent.complete_since = at;
        recent.names.clear();
        self.remove_listing(dir);
    }

    /// Invalidates one name.
    pub fn invalidate_name(&mut self, dir: TreeNodeId, name: &[u8]) {
        if let Some(own) = self.recent.get_mut(&dir).and_then(|recent| recent.names.get_mut(name)) {
            own.freshness.leased = false;
        }
        if let Some(directory) = self.cached.get_mut(&dir) {
            directory.patches.remove(name);
            let singles = directory.single_count();
            match directory.listed {
                Some(_) => directory.singles.insert(name.to_vec(), None),
                None => directory.singles.remove(name),
            };
            self.singles = self.singles + directory.single_count() - singles;
            // With many invalid names, a new listing is cheaper.
            if directory.singles.len() > directory.listing.len() / 2 + SINGLE_MAX {
                self.remove_listing(dir);
            }
        }
    }

    /// Invalidates all names in a directory.
    pub fn invalidate(&mut self, dir: TreeNodeId) {
        for own in self.recent.get_mut(&dir).into_iter().flat_map(|recent| recent.names.values_mut()) {
            own.freshness.leased = false;
        }
        self.remove_listing(dir);
    }

    /// Invalidates all names in all directories.
    pub fn invalidate_all(&mut self) {
        for own in self.recent.values_mut().flat_map(|recent| recent.names.values_mut()) {
            own.freshness.leased = false;
        }
        self.cached.clear();
        (self.entries, self.singles) = (0, 0);
    }

    /// Returns true if the whole listing is valid.
    pub fn is_fresh(&self, dir: TreeNodeId, coherency: &Coherency) -> bool {
        let freshness = self.cached.get(&dir).and_then(Directory::freshness);
        freshness.is_some_and(|freshness| coherency.is_valid(freshness))
    }

    /// Returns the number of entries in the listing, and its freshness.
    pub fn extent(&self, dir: TreeNodeId) -> Option<(usize, Freshness)> {
        let directory = self.cached.get(&dir)?;
        Some((directory.listing.len(), directory.freshness()?))
    }

    /// Returns the number of entries in leased listings.
    pub fn leased(&self, coherency: &Coherency) -> usize {
        let is_leased =
            |directory: &&Directory| directory.listed.is_some_and(|freshness| coherency.is_leased(freshness));
        self.cached.values().filter(is_leased).map(|directory| directory.listing.len()).sum()
    }

    /// Removes data that can no longer become valid, and data of directories for which `exists` returns
    /// false.
    pub fn expire(&mut self, coherency: &Coherency, exists: impl Fn(TreeNodeId) -> bool) {
        let may_be_valid =
            |freshness: Freshness| coherency.is_leased(freshness) || coherency.is_valid(freshness);
        let is_useful = |directory: &Directory| match directory.listed {
            Some(freshness) => may_be_valid(freshness),
            None => directory.singles.values().flatten().any(|freshness| may_be_valid(*freshness)),
        };
        let old = self.cached.iter().filter(|(dir, directory)| !exists(**dir) || !is_useful(directory));
        let old: Vec<TreeNodeId> = old.map(|(dir, _)| *dir).collect();
        for dir in old {
            self.remove_listing(dir);
        }
        self.recent.retain(|_, recent| coherency.now < recent.last + RECENT_FOR);
    }

    fn remove_listing(&mut self, dir: TreeNodeId) {
        if let Some(directory) = self.cached.remove(&dir) {
            self.entries = self.entries.saturating_sub(directory.listing.len());
            self.singles = self.singles.saturating_sub(directory.single_count());
        }
    }

    fn shrink(&mut self, keep: TreeNodeId) {
        while self.entries > self.entries_max {
            let others = self.cached.iter().filter(|(dir, _)| **dir != keep);
            let oldest = others.min_by_key(|(_, directory)| directory.listed.map(|freshness| freshness.at));
            let Some(oldest) = oldest.map(|(dir, _)| *dir) else { return };
            self.remove_listing(oldest);
        }
    }
}

#[cfg(test)]
mod tests;
