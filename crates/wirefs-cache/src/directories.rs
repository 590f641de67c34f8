//! Whole directories' listings, so that a name that is not there costs nothing either.

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

/// Entries remembered over all directories, at most, and of one, unless it is said otherwise. An entry is about 250 bytes.
const ENTRIES_MAX: usize = 262_144;

/// Own changes of one directory remembered for listings that were asked for before them, at most.
const RECENT_MAX: usize = 4096;
/// How long they are. INVARIANT: a listing asked for before a change has come back within this time, or its carrier is
/// lost.
const RECENT_FOR: Duration = Duration::from_secs(60);

/// Names known singly in a directory that was not listed, at most.
const SINGLE_MAX: usize = 4096;

/// What this client made of a name.
#[derive(Clone, Copy, Debug)]
struct Own {
    stat: Option<Stat>,
    /// It was so at some moment since its change was sent: others may have changed it between that and the answer.
    freshness: Freshness,
    answered: Time,
}

/// This client's changes of one directory of late.
#[derive(Debug, Default)]
struct Recent {
    names: BTreeMap<Vec<u8>, Own>,
    /// Listings asked for before this are not believed: something up to it was left out of `names`.
    complete_since: Time,
    last: Time,
}

/// What a listing says about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CachedLookup {
    /// It is this.
    Entry(Box<CachedEntry>),
    /// It is not there.
    Negative(Freshness),
    /// Nothing is known that may be believed.
    Miss,
}

/// An entry of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedEntry {
    /// The object's attributes.
    pub stat: Stat,
    /// As of when it has this name.
    pub name: Freshness,
    /// As of when it has these attributes.
    pub attributes: Freshness,
}

#[derive(Debug)]
struct Directory {
    /// Sorted by name.
    listing: Arc<Vec<DirEntry>>,
    /// What is known of single names since: what this client added or removed, what was asked for.
    patches: BTreeMap<Vec<u8>, Option<Stat>>,
    /// As of when the names are known that `singles` does not have. `None`: it was never listed.
    listed: Option<Freshness>,
    /// The names that are known otherwise: those whose changes were under way then, those that were asked for. `None`: not at all, they
    /// were taken back.
    singles: BTreeMap<Vec<u8>, Option<Freshness>>,
}

impl Directory {
    fn new(listing: Arc<Vec<DirEntry>>, listed: Option<Freshness>) -> Directory {
        Directory { listing, patches: BTreeMap::new(), listed, singles: BTreeMap::new() }
    }

    /// As of when it is known what `name` is.
    fn freshness_of(&self, name: &[u8]) -> Option<Freshness> {
        self.singles.get(name).copied().unwrap_or(self.listed)
    }

    /// As of when everything in it is known.
    fn freshness(&self) -> Option<Freshness> {
        self.singles.values().try_fold(self.listed?, |all, freshness| Some(all.and((*freshness)?)))
    }

    /// Whether a listing known so would say less.
    fn is_better_than(&self, new: Freshness, coherency: &Coherency) -> bool {
        match self.listed {
            Some(all) if new.at < all.at => true,
            Some(_) => {
                !coherency.is_leased(new) && self.freshness().is_some_and(|all| coherency.is_leased(all))
            }
            None => !coherency.is_leased(new),
        }
    }

    /// It was this as of then, and what the listing says may be older or newer than that.
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

    /// Puts the single names into the listing.
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

/// The listings of all directories.
#[derive(Debug)]
pub struct DirectoryCache {
    cached: BTreeMap<TreeNodeId, Directory>,
    recent: BTreeMap<TreeNodeId, Recent>,
    outdated: Outdated,
    /// Names known singly, in directories that were not listed.
    singles: usize,
    entries: usize,
    entries_max: usize,
}

impl DirectoryCache {
    /// Remembers a complete listing; hands it back sorted. What this client changed since is put right. It is not remembered when
    /// that was too much, nor when it alone is over the limit.
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
            self.drop_listing(dir);
            self.entries += listing.len();
            self.cached.insert(dir, directory);
            self.shrink(dir);
        }
        listing
    }

    /// What may be believed of `name`.
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

    /// As of when attributes are known that an entry of a listing told, which was asked for at `at`.
    pub fn attributes_freshness(&self, stat: &Stat, at: Time) -> Freshness {
        Freshness { at, leased: stat.leased && !self.outdated.is_since(stat.id, at) }
    }

    /// What listings asked for before `now` say of the object's attributes is no longer leased.
    pub fn outdate(&mut self, id: FileId, now: Time) {
        self.outdated.note(id, now);
    }

    /// The whole listing, if it may be believed, and as of when it is known.
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

    /// This client made `name` or changed what it is, by a request sent at `freshness.at` and answered at `now`.
    pub fn added(&mut self, dir: TreeNodeId, name: &[u8], stat: &Stat, freshness: Freshness, now: Time) {
        self.patch(dir, name, Own { stat: Some(*stat), freshness, answered: now });
    }

    /// This client removed `name`, by a request sent at `freshness.at` and answered at `now`.
    pub fn removed(&mut self, dir: TreeNodeId, name: &[u8], freshness: Freshness, now: Time) {
        self.patch(dir, name, Own { stat: None, freshness, answered: now });
    }

    /// An entry's attributes changed by this client's doing, sent at `sent`; the listing, if there is one, is to say so.
    pub fn touched(&mut self, dir: TreeNodeId, name: &[u8], stat: &Stat, sent: Time) {
        let recent = self.recent.get_mut(&dir).and_then(|recent| recent.names.get_mut(name));
        if let Some(recent) = recent.and_then(|own| own.stat.as_mut()).filter(|recent| recent.id == stat.id) {
            *recent = *stat;
        }
        // A name that the object was known by before may be gone by now, or another object's.
        if let Some(directory) = self.cached.get_mut(&dir)
            && directory.find(name).is_some_and(|directory| directory.id == stat.id)
        {
            directory.patches.insert(name.to_vec(), Some(*stat));
            if let Some(freshness) = directory.freshness_of(name).filter(|freshness| sent < freshness.at) {
                directory.singles.insert(name.to_vec(), Some(Freshness { at: sent, ..freshness }));
            }
        }
    }

    /// The object that this client made as `name` is known by the number `file` from now on.
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

    /// The server said what `name` is; a listing from before is to say so too. Without a listing, what is leased is remembered alone.
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
        let is_promised = stat.is_some_and(|stat| stat.leased) && old.is_some_and(|old| !old.leased);
        // What was recalled of the object since the old entry's time would be passed over by the new one's.
        let is_recalled = |old: &Stat| before.is_some_and(|before| self.outdated.is_since(old.id, before.at));
        let is_taken_back = old.is_some_and(|old| old.leased && is_recalled(&old));
        if !is_same || is_promised || is_taken_back {
            directory.patches.insert(name.to_vec(), stat.copied());
        }
        let singles = directory.single_count();
        directory.date(name, coherency.renewed(before, freshness, is_same));
        self.singles = self.singles + directory.single_count() - singles;
        if directory.listed.is_none() && directory.singles.len() > SINGLE_MAX {
            self.drop_listing(dir);
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
            // A listing patched many times over is cheaper to ask for again.
            if directory.patches.len() > directory.listing.len() + SINGLE_MAX {
                if directory.listed.is_some() && directory.singles.values().all(Option::is_some) {
                    let before = directory.listing.len();
                    directory.merge();
                    self.entries = (self.entries + directory.listing.len()).saturating_sub(before);
                } else {
                    self.drop_listing(dir);
                }
            }
        }
    }

    /// Whether the directory is known to have nothing in it, as far as that may be believed.
    pub fn appears_empty(&self, dir: TreeNodeId) -> bool {
        self.cached.get(&dir).is_some_and(|directory| {
            let is_gone = |entry: &DirEntry| matches!(directory.patches.get(&entry.name), Some(None));
            directory.listed.is_some()
                && directory.patches.values().all(Option::is_none)
                && directory.listing.iter().all(is_gone)
        })
    }

    /// Whether this client may have changed what `name` is since `at`: what was asked for then may not know of it.
    pub fn is_changed_since(&self, dir: TreeNodeId, name: &[u8], at: Time) -> bool {
        self.recent.get(&dir).is_some_and(|recent| {
            at <= recent.complete_since || recent.names.get(name).is_some_and(|own| at <= own.answered)
        })
    }

    /// Whether this client may have changed any name in the directory since `at`.
    pub fn has_changed_since(&self, dir: TreeNodeId, at: Time) -> bool {
        self.recent.get(&dir).is_some_and(|recent| at <= recent.last)
    }

    /// Whether what `name` is was told by an answer to something that was asked for after `at`.
    pub fn is_fresher_than(&self, dir: TreeNodeId, name: &[u8], at: Time) -> bool {
        self.cached
            .get(&dir)
            .and_then(|directory| directory.freshness_of(name))
            .is_some_and(|freshness| at < freshness.at)
    }

    /// This client changed names in the directory at `at`, and nobody said what they are now.
    pub fn changed(&mut self, dir: TreeNodeId, at: Time) {
        let recent = self.recent.entry(dir).or_default();
        recent.last = at;
        recent.complete_since = at;
        recent.names.clear();
        self.drop_listing(dir);
    }

    /// What `name` is was taken back.
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
            // Much of it is to be asked for again: as a whole then.
            if directory.singles.len() > directory.listing.len() / 2 + SINGLE_MAX {
                self.drop_listing(dir);
            }
        }
    }

    /// No longer believes what is known of a directory's names.
    pub fn invalidate(&mut self, dir: TreeNodeId) {
        for own in self.recent.get_mut(&dir).into_iter().flat_map(|recent| recent.names.values_mut()) {
            own.freshness.leased = false;
        }
        self.drop_listing(dir);
    }

    /// No longer believes what is known of any directory's names.
    pub fn invalidate_all(&mut self) {
        for own in self.recent.values_mut().flat_map(|recent| recent.names.values_mut()) {
            own.freshness.leased = false;
        }
        self.cached.clear();
        (self.entries, self.singles) = (0, 0);
    }

    /// Whether the listing may be believed.
    pub fn is_fresh(&self, dir: TreeNodeId, coherency: &Coherency) -> bool {
        let freshness = self.cached.get(&dir).and_then(Directory::freshness);
        freshness.is_some_and(|freshness| coherency.is_valid(freshness))
    }

    /// How long the listing is, in entries, and as of when it is known.
    pub fn extent(&self, dir: TreeNodeId) -> Option<(usize, Freshness)> {
        let directory = self.cached.get(&dir)?;
        Some((directory.listing.len(), directory.freshness()?))
    }

    /// How many entries are in listings that are leased.
    pub fn leased(&self, coherency: &Coherency) -> usize {
        let is_leased =
            |directory: &&Directory| directory.listed.is_some_and(|freshness| coherency.is_leased(freshness));
        self.cached.values().filter(is_leased).map(|directory| directory.listing.len()).sum()
    }

    /// Drops what can no longer be believed, and what is known of directories that nobody asks for any more.
    pub fn expire(&mut self, coherency: &Coherency, is_there: impl Fn(TreeNodeId) -> bool) {
        let may_count =
            |freshness: Freshness| coherency.is_leased(freshness) || coherency.is_valid(freshness);
        let is_of_use = |directory: &Directory| match directory.listed {
            Some(freshness) => may_count(freshness),
            None => directory.singles.values().flatten().any(|freshness| may_count(*freshness)),
        };
        let old = self.cached.iter().filter(|(dir, directory)| !is_there(**dir) || !is_of_use(directory));
        let old: Vec<TreeNodeId> = old.map(|(dir, _)| *dir).collect();
        for dir in old {
            self.drop_listing(dir);
        }
        self.recent.retain(|_, recent| coherency.now < recent.last + RECENT_FOR);
    }

    fn drop_listing(&mut self, dir: TreeNodeId) {
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
            self.drop_listing(oldest);
        }
    }
}

#[cfg(test)]
mod tests;
