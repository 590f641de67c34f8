//! Objects whose attributes in listings are outdated, so that a recall need not look for them in all listings.

use std::collections::{BTreeMap, VecDeque};
use wirefs_op::{FileId, Time};

/// Objects remembered, at most. One takes about 80 bytes.
const OUTDATED_MAX: usize = 131_072;

/// Since when what listings said of each object is outdated.
#[derive(Debug, Default)]
pub(super) struct Outdated {
    since: BTreeMap<FileId, Time>,
    order: VecDeque<(Time, FileId)>,
    /// All that was asked for up to then may be.
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

    /// Whether what was asked for at `at` is outdated.
    pub(super) fn is_since(&self, id: FileId, at: Time) -> bool {
        self.all_until >= Some(at) || self.since.get(&id) >= Some(&at)
    }
}

#[cfg(test)]
mod tests;
