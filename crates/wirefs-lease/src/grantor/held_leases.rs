//! The leases of one holder, and the position up to which its recalls are answered.

use crate::lease_set::LeaseSet;
use std::collections::BTreeMap;
use wirefs_op::FileId;

/// A position in the sequence of recalls to one holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecallPosition(u64);

/// The leases of one holder.
///
/// Each recall gets a *position*, a growing number. `cleared` is the position up to which the holder uses no
/// recalled lease any more: it has answered, or its leases have expired. A job that waits for a holder waits
/// until `cleared` reaches the position of its recall.
///
/// INVARIANT: while `all_recalled` is present, `granted` is empty.
#[derive(Debug, Default)]
pub(super) struct HeldLeases {
    granted: LeaseSet,
    /// The leases that existed when everything was recalled, and the position of that recall.
    all_recalled: Option<(LeaseSet, RecallPosition)>,
    /// Objects that were recalled as a whole and removed from `granted`.
    recalling: BTreeMap<FileId, RecallPosition>,
    /// The last position assigned.
    position: RecallPosition,
    cleared: RecallPosition,
}

impl HeldLeases {
    /// Returns true if the object is leased and was not recalled as a whole.
    pub(super) fn contains(&self, id: FileId) -> bool {
        self.granted.contains(id)
    }

    /// Returns true if no object is leased.
    pub(super) fn is_empty(&self) -> bool {
        self.granted.is_empty()
    }

    /// Grants the object. Returns true if it was not leased.
    pub(super) fn grant(&mut self, id: FileId) -> bool {
        self.granted.insert(id)
    }

    /// Returns the number of objects in the sets.
    pub(super) fn len(&self) -> usize {
        self.granted.len() + self.all_recalled.as_ref().map_or(0, |(ids, _)| ids.len())
    }

    /// Returns the memory of the sets in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.granted.bytes() + self.all_recalled.as_ref().map_or(0, |(ids, _)| ids.bytes())
    }

    /// Returns true if everything was recalled and the recall is not answered.
    pub(super) fn is_recalling_all(&self) -> bool {
        self.all_recalled.is_some()
    }

    /// Returns the last position assigned.
    pub(super) fn position(&self) -> RecallPosition {
        self.position
    }

    /// Returns the position up to which all recalls are answered.
    pub(super) fn cleared(&self) -> RecallPosition {
        self.cleared
    }

    /// Returns the position that must be cleared before the holder stops using a recalled object; `None` if
    /// it already has.
    pub(super) fn pending(&self, id: FileId) -> Option<RecallPosition> {
        let all_recalled =
            self.all_recalled.as_ref().filter(|(ids, _)| ids.contains(id)).map(|(_, position)| *position);
        all_recalled.max(self.recalling.get(&id).copied()).filter(|position| *position > self.cleared)
    }

    /// Records a recall of the whole object or of a part of it.
    pub(super) fn recall(&mut self, id: FileId, is_whole: bool) {
        self.position.0 += 1;
        if is_whole {
            self.granted.remove(id);
            self.recalling.insert(id, self.position);
        }
    }

    /// Records a recall of everything.
    pub(super) fn recall_all(&mut self) {
        self.position.0 += 1;
        let granted = std::mem::take(&mut self.granted);
        if self.all_recalled.is_none() {
            self.all_recalled = Some((granted, self.position));
        }
    }

    /// Records that all recalls up to this position are answered.
    pub(super) fn clear(&mut self, position: RecallPosition) {
        self.cleared = self.cleared.max(position);
        if self.all_recalled.as_ref().is_some_and(|(_, position)| *position <= self.cleared) {
            self.all_recalled = None;
        }
    }

    /// Removes these objects from the recall table if their recalls are answered. At most `pending_max`
    /// unanswered ones can remain.
    pub(super) fn trim(&mut self, ids: impl Iterator<Item = FileId>, pending_max: usize) {
        for id in ids {
            if self.recalling.get(&id).is_some_and(|position| *position <= self.cleared) {
                self.recalling.remove(&id);
            }
        }
        if self.recalling.len() > pending_max {
            self.recalling.retain(|_, position| *position > self.cleared);
        }
    }

    /// Records that all recalls are answered.
    pub(super) fn clear_all(&mut self) {
        self.clear(self.position);
        self.recalling.clear();
    }
}

#[cfg(test)]
mod tests;
