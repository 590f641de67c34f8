//! Recent changes and the holders that made them: data read before a change is not granted after it.

use super::HolderKey;
use crate::limits::CHANGES_MAX;
use std::collections::{BTreeMap, VecDeque};
use wirefs_op::FileId;

/// A point in the sequence of changes: the number of changes that had ended by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(u64);

/// The last change of an object, and the last change by a different holder.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Moment,
    by: Option<HolderKey>,
    by_another_at: Option<Moment>,
}

/// The recent changes, as many as fit.
#[derive(Debug, Default)]
pub(super) struct Changes {
    now: Moment,
    /// Changes up to this moment are no longer recorded.
    horizon: Moment,
    order: VecDeque<(Moment, FileId)>,
    last: BTreeMap<FileId, Last>,
}

impl Changes {
    /// Returns the current moment.
    pub(super) fn moment(&self) -> Moment {
        self.now
    }

    /// Records a finished change of these objects, each with the holder that is informed of it; `None`
    /// informs no holder.
    pub(super) fn ended(&mut self, ids: impl Iterator<Item = (FileId, Option<HolderKey>)>) {
        self.now.0 += 1;
        for (id, by) in ids {
            self.note(id, by);
        }
    }

    /// Records a possible change of every object.
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

    /// Returns true if the moment is too old for the records to answer questions about it.
    pub(super) fn is_before_horizon(&self, moment: Moment) -> bool {
        moment < self.horizon
    }

    /// Returns true if nothing has changed since then.
    pub(super) fn is_quiet_since(&self, moment: Moment) -> bool {
        moment == self.now
    }

    /// Returns true if a holder other than `holder` has changed the object since then.
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
