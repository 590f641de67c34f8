//! Recent recalls, to detect replies to requests that were sent before them.

use crate::limits::OVERTAKEN_MAX;
use crate::recall::LeaseItem;
use bytes::Bytes;
use std::collections::BTreeMap;
use wirefs_op::{FileId, Time};

/// The time of the last recall of each object and name.
#[derive(Debug, Default)]
pub(super) struct Overtaken {
    recalled: BTreeMap<FileId, Recalled>,
    entries: usize,
    latest: Option<Time>,
    /// Everything requested up to this time is overtaken.
    everything: Option<Time>,
}

/// The recalls of one object.
#[derive(Debug, Default)]
struct Recalled {
    whole: Option<Time>,
    names: BTreeMap<Bytes, Time>,
}

impl Recalled {
    fn latest(&self) -> Option<Time> {
        self.whole.max(self.names.values().max().copied())
    }

    fn entries(&self) -> usize {
        self.names.len() + usize::from(self.whole.is_some())
    }
}

impl Overtaken {
    pub(super) fn everything(&mut self, now: Time) {
        *self = Overtaken { everything: Some(now), latest: Some(now), ..Overtaken::default() };
    }

    pub(super) fn item(&mut self, now: Time, item: &LeaseItem) {
        let recalled = self.recalled.entry(item.id).or_default();
        let before = recalled.entries();
        match &item.name {
            Some(name) => {
                recalled.names.insert(name.clone(), now);
            }
            None => *recalled = Recalled { whole: Some(now), names: BTreeMap::new() },
        }
        self.entries = self.entries + recalled.entries() - before;
        self.latest = self.latest.max(Some(now));
        if self.entries > OVERTAKEN_MAX {
            self.everything(now);
        }
    }

    pub(super) fn object(&self, id: FileId, sent: Time) -> bool {
        self.is_any_since(sent)
            && (self.everything >= Some(sent)
                || self.recalled.get(&id).is_some_and(|recalled| recalled.latest() >= Some(sent)))
    }

    pub(super) fn name(&self, directory: FileId, name: &[u8], sent: Time) -> bool {
        let of_name = |recalled: &Recalled| {
            recalled.whole >= Some(sent) || recalled.names.get(name).is_some_and(|at| *at >= sent)
        };
        self.is_any_since(sent)
            && (self.everything >= Some(sent) || self.recalled.get(&directory).is_some_and(of_name))
    }

    /// In nearly all cases, no recall arrived since a request was sent. A long listing checks this for each
    /// entry.
    fn is_any_since(&self, sent: Time) -> bool {
        self.latest >= Some(sent)
    }

    pub(super) fn prune(&mut self, oldest: Option<Time>) {
        let is_needed = |at: Option<Time>| oldest.is_some() && at >= oldest;
        if !is_needed(self.latest) {
            *self = Overtaken::default();
            return;
        }
        self.everything = self.everything.filter(|at| is_needed(Some(*at)));
        for recalled in self.recalled.values_mut() {
            recalled.whole = recalled.whole.filter(|at| is_needed(Some(*at)));
            recalled.names.retain(|_, at| is_needed(Some(*at)));
        }
        self.recalled.retain(|_, recalled| recalled.entries() > 0);
        self.entries = self.recalled.values().map(Recalled::entries).sum();
    }
}

#[cfg(test)]
mod tests;
