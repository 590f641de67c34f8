//! Whole directories' listings, so that a name that is not there costs nothing either.

use crate::names::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wirefs_op::{DirEntry, Stat, Time};

/// Entries remembered over all directories, at most. An entry is about 250 bytes.
const ENTRIES_MAX: usize = 400_000;

/// Own changes of one directory remembered for listings that were asked for before them, at most.
const RECENT_MAX: usize = 4096;
/// How long they are. INVARIANT: a listing asked for before a change has come back within this time, or its carrier is
/// lost.
const RECENT_FOR: Duration = Duration::from_secs(60);

/// This client's changes of one directory of late.
#[derive(Debug, Default)]
struct Recent {
    names: BTreeMap<Vec<u8>, (Option<Stat>, Time)>,
    /// Listings asked for before this are not believed: something up to it was left out of `names`.
    complete_since: Time,
    last: Time,
}

/// What a listing says about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is this, as of then.
    Entry(Box<Stat>, Time),
    /// It is not there, as of then.
    Absent(Time),
    /// No listing is known that may be believed.
    Unknown,
}

#[derive(Debug)]
struct Directory {
    /// Sorted by name.
    listing: Arc<Vec<DirEntry>>,
    /// What this client changed since: added or removed.
    patches: BTreeMap<Vec<u8>, Option<Stat>>,
    known_at: Time,
}

impl Directory {
    fn find(&self, name: &[u8]) -> Option<&Stat> {
        if let Some(patch) = self.patches.get(name) {
            return patch.as_ref();
        }
        let index = self.listing.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
        self.listing.get(index).map(|entry| &entry.stat)
    }
}

/// The listings of all directories.
#[derive(Debug, Default)]
pub struct Directories {
    known: BTreeMap<NodeId, Directory>,
    recent: BTreeMap<NodeId, Recent>,
    entries: usize,
}

impl Directories {
    /// Remembers a complete listing that was asked for at `at`; hands it back sorted. What this client changed since is
    /// put right. It is not remembered when that was too much, nor when it alone is over the limit.
    pub fn store(&mut self, dir: NodeId, mut entries: Vec<DirEntry>, at: Time) -> Arc<Vec<DirEntry>> {
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        let listing = Arc::new(entries);
        let recent = self.recent.get(&dir);
        let overtaken = recent.is_some_and(|recent| at <= recent.complete_since);
        let patches =
            recent.into_iter().flat_map(|recent| &recent.names).filter(|(_, (_, changed))| at <= *changed);
        let patches = patches.map(|(name, (stat, _))| (name.clone(), *stat)).collect();
        let older = self.known.get(&dir).is_some_and(|known| at < known.known_at);
        if !overtaken && !older && listing.len() <= ENTRIES_MAX {
            self.drop_listing(dir);
            self.entries += listing.len();
            let known = Directory { listing: Arc::clone(&listing), patches, known_at: at };
            self.known.insert(dir, known);
            self.shrink(dir);
        }
        listing
    }

    /// What is known at `now` about `name`.
    pub fn find(&self, dir: NodeId, name: &[u8], now: Time, window: Duration) -> Found {
        let Some(known) = self.known.get(&dir).filter(|known| now < known.known_at + window) else {
            return Found::Unknown;
        };
        let at = known.known_at;
        match known.find(name) {
            Some(stat) => Found::Entry(Box::new(*stat), at),
            None => Found::Absent(at),
        }
    }

    /// The whole listing, if it may be believed at `now`, with the time from which it is known.
    pub fn snapshot(
        &mut self,
        dir: NodeId,
        now: Time,
        window: Duration,
    ) -> Option<(Arc<Vec<DirEntry>>, Time)> {
        let known = self.known.get_mut(&dir).filter(|known| now < known.known_at + window)?;
        if !known.patches.is_empty() {
            let patches = std::mem::take(&mut known.patches);
            let mut entries: Vec<DirEntry> =
                known.listing.iter().filter(|entry| !patches.contains_key(&entry.name)).cloned().collect();
            let added = patches.into_iter().filter_map(|(name, stat)| Some((name, stat?)));
            entries.extend(added.map(|(name, stat)| DirEntry { name, next: 1, stat }));
            entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            self.entries = (self.entries + entries.len()).saturating_sub(known.listing.len());
            known.listing = Arc::new(entries);
        }
        Some((Arc::clone(&known.listing), known.known_at))
    }

    /// This client made `name` or changed what it is, at `at`.
    pub fn added(&mut self, dir: NodeId, name: &[u8], stat: &Stat, at: Time) {
        self.patch(dir, name, Some(*stat), at);
    }

    /// This client removed `name`, at `at`.
    pub fn removed(&mut self, dir: NodeId, name: &[u8], at: Time) {
        self.patch(dir, name, None, at);
    }

    /// An entry's attributes changed by this client's doing; the listing, if there is one, is to say so.
    pub fn touched(&mut self, dir: NodeId, name: &[u8], stat: &Stat) {
        if let Some((Some(recent), _)) =
            self.recent.get_mut(&dir).and_then(|recent| recent.names.get_mut(name))
            && recent.id == stat.id
        {
            *recent = *stat;
        }
        // A name that the object was known by before may be gone by now, or another object's.
        if let Some(known) = self.known.get_mut(&dir)
            && known.find(name).is_some_and(|known| known.id == stat.id)
        {
            known.patches.insert(name.to_vec(), Some(*stat));
        }
    }

    /// The server said, asked at `at`, what `name` is; a listing from before is to say so too.
    pub fn found(&mut self, dir: NodeId, name: &[u8], stat: Option<&Stat>, at: Time) {
        if self.is_changed_since(dir, name, at) {
            return;
        }
        if let Some(known) = self.known.get_mut(&dir)
            && known.known_at <= at
            && known.find(name) != stat
        {
            known.patches.insert(name.to_vec(), stat.copied());
        }
    }

    fn patch(&mut self, dir: NodeId, name: &[u8], stat: Option<Stat>, at: Time) {
        let recent = self.recent.entry(dir).or_default();
        recent.last = at;
        if recent.names.len() >= RECENT_MAX {
            recent.names.clear();
            recent.complete_since = at;
        }
        recent.names.insert(name.to_vec(), (stat, at));
        if let Some(known) = self.known.get_mut(&dir) {
            known.patches.insert(name.to_vec(), stat);
            // A listing patched many times over is cheaper to ask for again.
            if known.patches.len() > known.listing.len() + 4096 {
                self.drop_listing(dir);
            }
        }
    }

    /// Whether this client may have changed what `name` is since `at`: what was asked for then may not know of it.
    pub fn is_changed_since(&self, dir: NodeId, name: &[u8], at: Time) -> bool {
        self.recent.get(&dir).is_some_and(|recent| {
            at <= recent.complete_since || recent.names.get(name).is_some_and(|(_, changed)| at <= *changed)
        })
    }

    /// This client changed names in the directory at `at`, and nobody said what they are now.
    pub fn changed(&mut self, dir: NodeId, at: Time) {
        let recent = self.recent.entry(dir).or_default();
        recent.last = at;
        recent.complete_since = at;
        recent.names.clear();
        self.drop_listing(dir);
    }

    /// No longer believes a directory's listing.
    pub fn doubt(&mut self, dir: NodeId) {
        self.drop_listing(dir);
    }

    /// Whether the listing may be believed at `now`.
    pub fn is_fresh(&self, dir: NodeId, now: Time, window: Duration) -> bool {
        self.known.get(&dir).is_some_and(|known| now < known.known_at + window)
    }

    /// How long the listing is, in entries, and as of when it is.
    pub fn extent(&self, dir: NodeId) -> Option<(usize, Time)> {
        self.known.get(&dir).map(|known| (known.listing.len(), known.known_at))
    }

    /// Drops what can no longer be believed.
    pub fn expire(&mut self, now: Time, window: Duration) {
        let old: Vec<NodeId> = self
            .known
            .iter()
            .filter(|(_, known)| now >= known.known_at + window)
            .map(|(dir, _)| *dir)
            .collect();
        for dir in old {
            self.drop_listing(dir);
        }
        self.recent.retain(|_, recent| now < recent.last + RECENT_FOR);
    }

    fn drop_listing(&mut self, dir: NodeId) {
        if let Some(known) = self.known.remove(&dir) {
            self.entries = self.entries.saturating_sub(known.listing.len());
        }
    }

    fn shrink(&mut self, keep: NodeId) {
        while self.entries > ENTRIES_MAX {
            let others = self.known.iter().filter(|(dir, _)| **dir != keep);
            let Some(oldest) = others.min_by_key(|(_, known)| known.known_at).map(|(dir, _)| *dir) else {
                return;
            };
            self.drop_listing(oldest);
        }
    }
}

#[cfg(test)]
mod tests;
