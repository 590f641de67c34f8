//! Outlines of ended readings: which names they had, in order.
//!
//! A reader may continue an ended reading, for example if the kernel has dropped its own listing between two calls of a
//! program. The reading then continues in the directory as it is now, without the names that it had before the reader's
//! position.
//!
//! *Holds*: all outlines together take no more than their limit. The oldest go first.

use super::readings::Id;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};

/// Memory of an outline beside its digests, in bytes.
const OUTLINE_BYTES: usize = 128;

/// The digest of a name.
pub(crate) fn digest(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(name);
    hasher.finish()
}

#[derive(Debug)]
struct Outline {
    age: u64,
    /// The number of digests of names before the reading's first position: it continued another one.
    before: usize,
    digests: Vec<u64>,
}

impl Outline {
    fn bytes(&self) -> usize {
        OUTLINE_BYTES + self.digests.len() * size_of::<u64>()
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct Outlines {
    known: BTreeMap<Id, Outline>,
    oldest_first: VecDeque<Id>,
    bytes: usize,
    bytes_max: usize,
}

impl Outlines {
    pub(super) fn within(bytes_max: usize) -> Outlines {
        Outlines { known: BTreeMap::new(), oldest_first: VecDeque::new(), bytes: 0, bytes_max }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the outline of a reading of this age. The first `before` digests are of names that it does not list.
    pub(super) fn insert(&mut self, id: Id, age: u64, before: usize, digests: Vec<u64>) {
        let outline = Outline { age, before, digests };
        self.bytes += outline.bytes();
        self.known.insert(id, outline);
        self.oldest_first.push_back(id);
        while self.bytes > self.bytes_max {
            let Some(oldest) = self.oldest_first.pop_front() else { return };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, id: Id) {
        if let Some(outline) = self.known.remove(&id) {
            self.bytes -= outline.bytes();
        }
    }

    pub(super) fn contains(&self, id: Id) -> bool {
        self.known.contains_key(&id)
    }

    /// Returns the age of a reading, and the sorted digests of its first `count` names and of all names before these.
    pub(super) fn beginning(&self, id: Id, count: usize) -> Option<(u64, Vec<u64>)> {
        let outline = self.known.get(&id)?;
        let count = outline.before.saturating_add(count);
        let mut digests: Vec<u64> = outline.digests.iter().take(count).copied().collect();
        digests.sort_unstable();
        Some((outline.age, digests))
    }

    /// Drops those of other directories.
    pub(super) fn retain(&mut self, is_there: impl Fn(&Id) -> bool) {
        let gone = self.oldest_first.iter().filter(|id| !is_there(id)).copied();
        gone.collect::<Vec<_>>().into_iter().for_each(|id| self.remove(id));
        self.oldest_first.retain(is_there);
    }
}

#[cfg(test)]
mod tests;
