//! What one holder may believe, and up to where it is sure to have forgotten what it was told to.

use crate::lease_set::LeaseSet;
use std::collections::BTreeMap;
use wirefs_op::FileId;

/// A place in the order of what one holder was told to forget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecallPosition(u64);

/// What one holder may believe.
///
/// Everything that a holder has to forget gets a *mark*, a number that grows. `cleared` is the mark up to which nothing
/// is believed any more: the holder has answered, or its leases have run out. Who waits for a holder waits until
/// `cleared` reaches the mark of what it needs.
///
/// INVARIANT: while there is a `all_recalled`, `known` is empty.
#[derive(Debug, Default)]
pub(super) struct HeldLeases {
    known: LeaseSet,
    /// All that was known when everything was recalled, and the mark of that.
    all_recalled: Option<(LeaseSet, RecallPosition)>,
    /// Objects that were recalled as a whole and taken out of `known`.
    recalling: BTreeMap<FileId, RecallPosition>,
    /// The last mark given.
    position: RecallPosition,
    cleared: RecallPosition,
}

impl HeldLeases {
    /// Whether the object was granted and not recalled as a whole since.
    pub(super) fn contains(&self, id: FileId) -> bool {
        self.known.contains(id)
    }

    /// Whether anything was.
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The object is granted. True when it is new.
    pub(super) fn learn(&mut self, id: FileId) -> bool {
        self.known.insert(id)
    }

    /// Objects in the sets.
    pub(super) fn len(&self) -> usize {
        self.known.len() + self.all_recalled.as_ref().map_or(0, |(ids, _)| ids.len())
    }

    /// Bytes that the sets take.
    pub(super) fn bytes(&self) -> usize {
        self.known.bytes() + self.all_recalled.as_ref().map_or(0, |(ids, _)| ids.bytes())
    }

    /// Whether everything was recalled and may still be believed.
    pub(super) fn is_recalling_all(&self) -> bool {
        self.all_recalled.is_some()
    }

    /// The last mark given.
    pub(super) fn position(&self) -> RecallPosition {
        self.position
    }

    /// Up to where all is forgotten.
    pub(super) fn cleared(&self) -> RecallPosition {
        self.cleared
    }

    /// What must be cleared before an object that was recalled is no longer believed; nothing when it is not.
    pub(super) fn pending(&self, id: FileId) -> Option<RecallPosition> {
        let all_recalled =
            self.all_recalled.as_ref().filter(|(ids, _)| ids.contains(id)).map(|(_, position)| *position);
        all_recalled.max(self.recalling.get(&id).copied()).filter(|position| *position > self.cleared)
    }

    /// Something about the object has to be forgotten, or all of it.
    pub(super) fn recall(&mut self, id: FileId, is_whole: bool) {
        self.position.0 += 1;
        if is_whole {
            self.known.remove(id);
            self.recalling.insert(id, self.position);
        }
    }

    /// Everything has to be forgotten.
    pub(super) fn recall_all(&mut self) {
        self.position.0 += 1;
        let known = std::mem::take(&mut self.known);
        if self.all_recalled.is_none() {
            self.all_recalled = Some((known, self.position));
        }
    }

    /// What was marked up to here is forgotten.
    pub(super) fn clear(&mut self, position: RecallPosition) {
        self.cleared = self.cleared.max(position);
        if self.all_recalled.as_ref().is_some_and(|(_, position)| *position <= self.cleared) {
            self.all_recalled = None;
        }
    }

    /// These objects are looked up no longer, as far as they are forgotten. At most `pending_max` can be left.
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

    /// All that was marked is forgotten.
    pub(super) fn clear_all(&mut self) {
        self.clear(self.position);
        self.recalling.clear();
    }
}

#[cfg(test)]
mod tests;
