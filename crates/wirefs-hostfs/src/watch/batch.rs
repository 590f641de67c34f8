//! The events and reports of one round, without duplicates.

use bytes::Bytes;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use wirefs_op::FileId;
use wirefs_server::{ExternalChange, ObserveChange};

/// Events without duplicates, in the order of their first occurrence.
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

/// The reports of one round. Events that lead to the same object make one report.
pub(super) struct RoundReport<'a> {
    observer: &'a mut ObserveChange,
    reported: HashSet<(FileId, Option<Bytes>)>,
}

impl RoundReport<'_> {
    pub(super) fn new(observer: &mut ObserveChange) -> RoundReport<'_> {
        RoundReport { observer, reported: HashSet::new() }
    }

    pub(super) fn object(&mut self, id: FileId, version: Option<u64>) {
        self.changed(id, None, version);
    }

    pub(super) fn name(&mut self, dir: FileId, name: Vec<u8>, version: Option<u64>) {
        self.changed(dir, Some(name.into()), version);
    }

    fn changed(&mut self, id: FileId, name: Option<Bytes>, version: Option<u64>) {
        if self.reported.insert((id, name.clone())) {
            (self.observer)(ExternalChange::Changed { id, name, version });
        }
    }

    pub(super) fn lost(&mut self) {
        (self.observer)(ExternalChange::Lost);
    }
}
