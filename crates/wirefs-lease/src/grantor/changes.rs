//! What was changed of late, and by whom: what was read before is not granted after.

use super::HolderKey;
use crate::limits::CHANGES_MAX;
use std::collections::{BTreeMap, VecDeque};
use wirefs_op::FileId;

/// A moment between changes: how many had ended by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(u64);

/// The last change of an object, and the last by anybody but who made that one.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Moment,
    by: Option<HolderKey>,
    by_another_at: Option<Moment>,
}

/// The changes that ended, as far back as there is room.
#[derive(Debug, Default)]
pub(super) struct Changes {
    now: Moment,
    /// Nothing is known of changes up to here, nor of who made them.
    horizon: Moment,
    order: VecDeque<(Moment, FileId)>,
    last: BTreeMap<FileId, Last>,
}

impl Changes {
    /// The present moment.
    pub(super) fn moment(&self) -> Moment {
        self.now
    }

    /// A change of these objects has ended, each with the holder that knows of it; without one it counts for all.
    pub(super) fn ended(&mut self, ids: impl Iterator<Item = (FileId, Option<HolderKey>)>) {
        self.now.0 += 1;
        for (id, by) in ids {
            self.note(id, by);
        }
    }

    /// Everything may have changed.
    pub(super) fn ended_everywhere(&mut self) {
        self.now.0 += 1;
        self.horizon = self.now;
        self.order.clear();
        self.last.clear();
    }

    fn note(&mut self, id: FileId, by: Option<HolderKey>) {
        let at = self.now;
        let by_another_at = match self.last.get(&id) {
            Some(last) if last.by == by => last.by_another_at,
            Some(last) => Some(last.at),
            None => None,
        };
        self.last.insert(id, Last { at, by, by_another_at });
        self.order.push_back((at, id));
        if self.order.len() > CHANGES_MAX
            && let Some((oldest, id)) = self.order.pop_front()
        {
            self.horizon = oldest;
            if self.last.get(&id).is_some_and(|last| last.at <= oldest) {
                self.last.remove(&id);
            }
        }
    }

    /// Whether nothing of what follows can be answered, since the moment lies too far back.
    pub(super) fn is_before_horizon(&self, moment: Moment) -> bool {
        moment < self.horizon
    }

    /// Whether nothing at all has changed since then.
    pub(super) fn is_quiet_since(&self, moment: Moment) -> bool {
        moment == self.now
    }

    /// Whether somebody but `holder` has changed the object since then.
    pub(super) fn is_changed(&self, id: FileId, since: Moment, holder: HolderKey) -> bool {
        let Some(last) = self.last.get(&id) else { return false };
        let by_another_at = if last.by == Some(holder) { last.by_another_at } else { Some(last.at) };
        by_another_at.is_some_and(|at| at > since)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        (self.order.len(), self.last.len())
    }
}

#[cfg(test)]
mod tests;
