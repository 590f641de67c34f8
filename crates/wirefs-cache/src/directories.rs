//! Whole directories' listings, so that a name that is not there costs nothing either.

mod outdated;
mod packing;
mod single;

use crate::names::TreeNodeId;
use crate::trust::{Known, Trust};
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
    known: Known,
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
pub enum Found {
    /// It is this.
    Entry(Box<Entry>),
    /// It is not there.
    Absent(Known),
    /// Nothing is known that may be believed.
    Unknown,
}

/// An entry of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The object's attributes.
    pub stat: Stat,
    /// As of when it has this name.
    pub name: Known,
    /// As of when it has these attributes.
    pub attributes: Known,
}

#[derive(Debug)]
struct Directory {
    /// Sorted by name.
    listing: Arc<Vec<DirEntry>>,
    /// What is known of single names since: what this client added or removed, what was asked for.
    patches: BTreeMap<Vec<u8>, Option<Stat>>,
    /// As of when the names are known that `singly` does not have. `None`: it was never listed.
    known: Option<Known>,
    /// The names that are known otherwise: those whose changes were under way then, those that were asked for. `None`: not at all, they
    /// were taken back.
    singly: BTreeMap<Vec<u8>, Option<Known>>,
}

impl Directory {
    fn new(listing: Arc<Vec<DirEntry>>, known: Option<Known>) -> Directory {
        Directory { listing, patches: BTreeMap::new(), known, singly: BTreeMap::new() }
    }

    /// As of when it is known what `name` is.
    fn known(&self, name: &[u8]) -> Option<Known> {
        self.singly.get(name).copied().unwrap_or(self.known)
    }

    /// As of when everything in it is known.
    fn wholly_known(&self) -> Option<Known> {
        self.singly.values().try_fold(self.known?, |all, known| Some(all.and((*known)?)))
    }

    /// Whether a listing known so would say less.
    fn is_better_than(&self, new: Known, trust: &Trust) -> bool {
        match self.known {
            Some(all) if new.at < all.at => true,
            Some(_) => !trust.holds(new) && self.wholly_known().is_some_and(|all| trust.holds(all)),
            None => !trust.holds(new),
        }
    }

    /// It was this as of then, and what the listing says may be older or newer than that.
    fn put(&mut self, name: &[u8], stat: Option<Stat>, known: Known) {
        self.patches.insert(name.to_vec(), stat);
        self.date(name, known);
    }

    fn date(&mut self, name: &[u8], known: Known) {
        let is_covered = |all: Known| known.at >= all.at && known.leased == all.leased;
        if self.known.is_some_and(is_covered) {
            self.singly.remove(name);
        } else {
            self.singly.insert(name.to_vec(), Some(known));
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
pub struct Directories {
    known: BTreeMap<TreeNodeId, Directory>,
    recent: BTreeMap<TreeNodeId, Recent>,
    outdated: Outdated,
    /// Names known singly, in directories that were not listed.
    singles: usize,
    entries: usize,
    entries_max: usize,
}

impl Directories {
    /// Remembers a complete listing; hands it back sorted. What this client changed since is put right. It is not remembered when
    /// that was too much, nor when it alone is over the limit.
    pub fn store(
        &mut self,
        dir: TreeNodeId,
        mut entries: Vec<DirEntry>,
        known: Known,
        trust: &Trust,
    ) -> Arc<Vec<DirEntry>> {
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        let listing = Arc::new(entries);
        let recent = self.recent.get(&dir);
        let overtaken = recent.is_some_and(|recent| known.at <= recent.complete_since);
        let mut directory = Directory::new(Arc::clone(&listing), Some(known));
        for (name, own) in recent.into_iter().flat_map(|recent| &recent.names) {
            if known.at <= own.answered {
                directory.put(name, own.stat, own.known);
            }
        }
        let older = self.known.get(&dir).is_some_and(|old| old.is_better_than(known, trust));
        if !overtaken && !older && listing.len() <= self.entries_max {
            self.drop_listing(dir);
            self.entries += listing.len();
            self.known.insert(dir, directory);
            self.shrink(dir);
        }
        listing
    }

    /// What may be believed of `name`.
    pub fn find(&self, dir: TreeNodeId, name: &[u8], trust: &Trust) -> Found {
        let Some(directory) = self.known.get(&dir) else { return Found::Unknown };
        let Some(known) = directory.known(name).filter(|known| trust.believes(*known)) else {
            return Found::Unknown;
        };
        match directory.find(name) {
            Some(stat) => {
                let attributes = self.attributes_known(stat, known.at);
                Found::Entry(Box::new(Entry { stat: *stat, name: known, attributes }))
            }
            None => Found::Absent(known),
        }
    }

    /// As of when attributes are known that an entry of a listing told, which was asked for at `at`.
    pub fn attributes_known(&self, stat: &Stat, at: Time) -> Known {
        Known { at, leased: stat.leased && !self.outdated.is_since(stat.id, at) }
    }

    /// What listings asked for before `now` say of the object's attributes is no longer leased.
    pub fn outdate(&mut self, id: FileId, now: Time) {
        self.outdated.note(id, now);
    }

    /// The whole listing, if it may be believed, and as of when it is known.
    pub fn snapshot(&mut self, dir: TreeNodeId, trust: &Trust) -> Option<(Arc<Vec<DirEntry>>, Known)> {
        let directory = self.known.get_mut(&dir)?;
        let known = directory.wholly_known().filter(|known| trust.believes(*known))?;
        let before = directory.listing.len();
        directory.merge();
        self.entries = (self.entries + directory.listing.len()).saturating_sub(before);
        Some((Arc::clone(&directory.listing), known))
    }

    /// This client made `name` or changed what it is, by a request sent at `known.at` and answered at `now`.
    pub fn added(&mut self, dir: TreeNodeId, name: &[u8], stat: &Stat, known: Known, now: Time) {
        self.patch(dir, name, Own { stat: Some(*stat), known, answered: now });
    }

    /// This client removed `name`, by a request sent at `known.at` and answered at `now`.
    pub fn removed(&mut self, dir: TreeNodeId, name: &[u8], known: Known, now: Time) {
        self.patch(dir, name, Own { stat: None, known, answered: now });
    }

    /// An entry's attributes changed by this client's doing, sent at `sent`; the listing, if there is one, is to say so.
    pub fn touched(&mut self, dir: TreeNodeId, name: &[u8], stat: &Stat, sent: Time) {
        let recent = self.recent.get_mut(&dir).and_then(|recent| recent.names.get_mut(name));
        if let Some(recent) = recent.and_then(|own| own.stat.as_mut()).filter(|recent| recent.id == stat.id) {
            *recent = *stat;
        }
        // A name that the object was known by before may be gone by now, or another object's.
        if let Some(directory) = self.known.get_mut(&dir)
            && directory.find(name).is_some_and(|known| known.id == stat.id)
        {
            directory.patches.insert(name.to_vec(), Some(*stat));
            if let Some(known) = directory.known(name).filter(|known| sent < known.at) {
                directory.singly.insert(name.to_vec(), Some(Known { at: sent, ..known }));
            }
        }
    }

    /// The object that this client made as `name` is known by the number `file` from now on.
    pub fn identified(&mut self, dir: TreeNodeId, name: &[u8], made: FileId, file: FileId) {
        let recent = self.recent.get_mut(&dir).and_then(|recent| recent.names.get_mut(name));
        if let Some(stat) = recent.and_then(|own| own.stat.as_mut()).filter(|stat| stat.id == made) {
            stat.id = file;
        }
        if let Some(directory) = self.known.get_mut(&dir)
            && let Some(stat) = directory.find(name).filter(|stat| stat.id == made)
        {
            let stat = Stat { id: file, ..*stat };
            directory.patches.insert(name.to_vec(), Some(stat));
        }
    }

    /// The server said what `name` is; a listing from before is to say so too. Without a listing, what is leased is remembered alone.
    pub fn found(&mut self, dir: TreeNodeId, name: &[u8], stat: Option<&Stat>, known: Known, trust: &Trust) {
        if self.is_changed_since(dir, name, known.at) {
            return;
        }
        if known.leased {
            self.make_room(dir);
        }
        let Some(directory) = self.known.get_mut(&dir) else { return };
        let before = directory.known(name);
        if before.is_some_and(|before| known.at < before.at) {
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
        let singles = directory.singles();
        directory.date(name, trust.renewed(before, known, is_same));
        self.singles = self.singles + directory.singles() - singles;
        if directory.known.is_none() && directory.singly.len() > SINGLE_MAX {
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
        if own.known.leased {
            self.make_room(dir);
        }
        if let Some(directory) = self.known.get_mut(&dir) {
            let singles = directory.singles();
            directory.put(name, own.stat, own.known);
            self.singles = self.singles + directory.singles() - singles;
            // A listing patched many times over is cheaper to ask for again.
            if directory.patches.len() > directory.listing.len() + SINGLE_MAX {
                if directory.known.is_some() && directory.singly.values().all(Option::is_some) {
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
    pub fn is_known_empty(&self, dir: TreeNodeId) -> bool {
        self.known.get(&dir).is_some_and(|directory| {
            let is_gone = |entry: &DirEntry| matches!(directory.patches.get(&entry.name), Some(None));
            directory.known.is_some()
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
    pub fn is_known_after(&self, dir: TreeNodeId, name: &[u8], at: Time) -> bool {
        self.known.get(&dir).and_then(|known| known.known(name)).is_some_and(|known| at < known.at)
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
    pub fn doubt_name(&mut self, dir: TreeNodeId, name: &[u8]) {
        if let Some(own) = self.recent.get_mut(&dir).and_then(|recent| recent.names.get_mut(name)) {
            own.known.leased = false;
        }
        if let Some(directory) = self.known.get_mut(&dir) {
            directory.patches.remove(name);
            let singles = directory.singles();
            match directory.known {
                Some(_) => directory.singly.insert(name.to_vec(), None),
                None => directory.singly.remove(name),
            };
            self.singles = self.singles + directory.singles() - singles;
            // Much of it is to be asked for again: as a whole then.
            if directory.singly.len() > directory.listing.len() / 2 + SINGLE_MAX {
                self.drop_listing(dir);
            }
        }
    }

    /// No longer believes what is known of a directory's names.
    pub fn doubt(&mut self, dir: TreeNodeId) {
        for own in self.recent.get_mut(&dir).into_iter().flat_map(|recent| recent.names.values_mut()) {
            own.known.leased = false;
        }
        self.drop_listing(dir);
    }

    /// No longer believes what is known of any directory's names.
    pub fn doubt_all(&mut self) {
        for own in self.recent.values_mut().flat_map(|recent| recent.names.values_mut()) {
            own.known.leased = false;
        }
        self.known.clear();
        (self.entries, self.singles) = (0, 0);
    }

    /// Whether the listing may be believed.
    pub fn is_fresh(&self, dir: TreeNodeId, trust: &Trust) -> bool {
        let known = self.known.get(&dir).and_then(Directory::wholly_known);
        known.is_some_and(|known| trust.believes(known))
    }

    /// How long the listing is, in entries, and as of when it is known.
    pub fn extent(&self, dir: TreeNodeId) -> Option<(usize, Known)> {
        let directory = self.known.get(&dir)?;
        Some((directory.listing.len(), directory.wholly_known()?))
    }

    /// How many entries are in listings that are leased.
    pub fn leased(&self, trust: &Trust) -> usize {
        let is_leased = |directory: &&Directory| directory.known.is_some_and(|known| trust.holds(known));
        self.known.values().filter(is_leased).map(|directory| directory.listing.len()).sum()
    }

    /// Drops what can no longer be believed, and what is known of directories that nobody asks for any more.
    pub fn expire(&mut self, trust: &Trust, is_there: impl Fn(TreeNodeId) -> bool) {
        let may_count = |known: Known| trust.holds(known) || trust.believes(known);
        let is_of_use = |directory: &Directory| match directory.known {
            Some(known) => may_count(known),
            None => directory.singly.values().flatten().any(|known| may_count(*known)),
        };
        let old = self.known.iter().filter(|(dir, directory)| !is_there(**dir) || !is_of_use(directory));
        let old: Vec<TreeNodeId> = old.map(|(dir, _)| *dir).collect();
        for dir in old {
            self.drop_listing(dir);
        }
        self.recent.retain(|_, recent| trust.now < recent.last + RECENT_FOR);
    }

    fn drop_listing(&mut self, dir: TreeNodeId) {
        if let Some(known) = self.known.remove(&dir) {
            self.entries = self.entries.saturating_sub(known.listing.len());
            self.singles = self.singles.saturating_sub(known.singles());
        }
    }

    fn shrink(&mut self, keep: TreeNodeId) {
        while self.entries > self.entries_max {
            let others = self.known.iter().filter(|(dir, _)| **dir != keep);
            let oldest = others.min_by_key(|(_, directory)| directory.known.map(|known| known.at));
            let Some(oldest) = oldest.map(|(dir, _)| *dir) else { return };
            self.drop_listing(oldest);
        }
    }
}

#[cfg(test)]
mod tests;
