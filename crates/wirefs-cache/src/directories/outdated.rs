//! Objects whose attributes in listings are out of date, so that a recall need not search all listings for an
//! object.

use std::collections::{BTreeMap, VecDeque};
use wirefs_op::{FileId, Time};

/// The maximal number of objects, about 80 bytes each.
const OUTDATED_MAX: usize = 131_072;

/// For each object, the time before which listings have outdated attributes of it.
#[derive(Debug, Default)]
pub(super) struct Outdated {
    since: BTreeMap<FileId, Time>,
    order: VecDeque<(Time, FileId)>,
    /// Any attributes requested up to this time may be outdated.
    all_until: Option<Time>,
}

impl Outdated {
    pub(super) fn note(&mut self, id: FileId, now: Time) {
        self.since.insert(id, now);
        self.order.push_back((now, id));
        if self.order.len() > OUTDATED_MAX
            && let Some((at, id)) = self.order.pop_front()
            && self.since.get(&id) == Some(&at)
        {
            self.since.remove(&id);
            self.all_until = Some(at);
        }
    }

    /// Returns true if attributes requested at `at` are outdated.
    pub(super) fn is_since(&self, id: FileId, at: Time) -> bool {
        self.all_until >= Some(at) || self.since.get(&id) >= Some(&at)
    }
}

#[cfg(test)]
mod tests;
