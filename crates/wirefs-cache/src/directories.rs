//! Whole directories' listings, so that a name that is not there costs nothing either.

use crate::names::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wirefs_op::{DirEntry, Stat, Time};

/// Entries remembered over all directories, at most. An entry is about 250 bytes.
const ENTRIES_MAX: usize = 400_000;

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

/// The listings of all directories.
#[derive(Debug, Default)]
pub struct Directories {
    known: BTreeMap<NodeId, Directory>,
    changed_at: BTreeMap<NodeId, Time>,
    entries: usize,
}

impl Directories {
    /// Remembers a complete listing that was asked for at `at`; hands it back sorted. It is not remembered when this
    /// client changed the directory since, nor when it alone is over the limit.
    pub fn store(&mut self, dir: NodeId, mut entries: Vec<DirEntry>, at: Time) -> Arc<Vec<DirEntry>> {
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        let listing = Arc::new(entries);
        let overtaken = self.changed_at.get(&dir).is_some_and(|changed| at < *changed);
        let older = self.known.get(&dir).is_some_and(|known| at < known.known_at);
        if !overtaken && !older && listing.len() <= ENTRIES_MAX {
            self.drop_listing(dir);
            self.entries += listing.len();
            let known = Directory { listing: Arc::clone(&listing), patches: BTreeMap::new(), known_at: at };
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
        match known.patches.get(name) {
            Some(Some(stat)) => Found::Entry(Box::new(*stat), at),
            Some(None) => Found::Absent(at),
            None => match known.listing.binary_search_by(|entry| entry.name.as_slice().cmp(name)) {
                Ok(index) => match known.listing.get(index) {
                    Some(entry) => Found::Entry(Box::new(entry.stat), at),
                    None => Found::Unknown,
                },
                Err(_) => Found::Absent(at),
            },
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
        if let Some(known) = self.known.get_mut(&dir) {
            known.patches.insert(name.to_vec(), Some(*stat));
        }
    }

    fn patch(&mut self, dir: NodeId, name: &[u8], stat: Option<Stat>, at: Time) {
        self.changed_at.insert(dir, at);
        if let Some(known) = self.known.get_mut(&dir) {
            known.patches.insert(name.to_vec(), stat);
            // A listing patched many times over is cheaper to ask for again.
            if known.patches.len() > known.listing.len() + 4096 {
                self.drop_listing(dir);
            }
        }
    }

    /// No longer believes a directory's listing.
    pub fn doubt(&mut self, dir: NodeId) {
        self.drop_listing(dir);
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
        // INVARIANT: a listing asked for before a change has come back within this time, or its carrier is lost.
        self.changed_at.retain(|_, at| now < *at + window + Duration::from_secs(60));
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
