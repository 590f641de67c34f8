//! What one round gathers and tells: each thing once.

use bytes::Bytes;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use wirefs_op::FileId;
use wirefs_server::{ExternalChange, ObserveChange};

/// What was seen, each thing once, in the order in which it was first seen.
#[derive(Debug)]
pub(super) struct Batch<K> {
    places: HashMap<K, usize>,
}

impl<K: Eq + Hash> Batch<K> {
    pub(super) fn new() -> Batch<K> {
        Batch { places: HashMap::new() }
    }

    pub(super) fn insert(&mut self, key: K) {
        let place = self.places.len();
        self.places.entry(key).or_insert(place);
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.places.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn into_keys(self) -> Vec<K> {
        let mut keys: Vec<_> = self.places.into_iter().collect();
        keys.sort_unstable_by_key(|(_, place)| *place);
        keys.into_iter().map(|(key, _)| key).collect()
    }
}

/// One round's reports: ways that lead to the same object make one.
pub(super) struct Telling<'a> {
    tell: &'a mut ObserveChange,
    told: HashSet<(FileId, Option<Bytes>)>,
}

impl Telling<'_> {
    pub(super) fn new(tell: &mut ObserveChange) -> Telling<'_> {
        Telling { tell, told: HashSet::new() }
    }

    pub(super) fn object(&mut self, id: FileId, version: Option<u64>) {
        self.changed(id, None, version);
    }

    pub(super) fn name(&mut self, dir: FileId, name: Vec<u8>, version: Option<u64>) {
        self.changed(dir, Some(name.into()), version);
    }

    fn changed(&mut self, id: FileId, name: Option<Bytes>, version: Option<u64>) {
        if self.told.insert((id, name.clone())) {
            (self.tell)(ExternalChange::Changed { id, name, version });
        }
    }

    pub(super) fn lost(&mut self) {
        (self.tell)(ExternalChange::Lost);
    }
}
