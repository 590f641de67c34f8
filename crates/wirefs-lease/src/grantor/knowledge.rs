//! What one holder may believe, and up to where it is sure to have forgotten what it was told to.

use crate::known::KnownSet;
use std::collections::BTreeMap;
use wirefs_op::FileId;

/// A place in the order of what one holder was told to forget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark(u64);

/// What one holder may believe.
///
/// Everything that a holder has to forget gets a *mark*, a number that grows. `cleared` is the mark up to which nothing
/// is believed any more: the holder has answered, or its leases have run out. Who waits for a holder waits until
/// `cleared` reaches the mark of what it needs.
///
/// INVARIANT: while there is a `leaving`, `known` is empty.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    known: KnownSet,
    /// All that was known when everything was recalled, and the mark of that.
    leaving: Option<(KnownSet, Mark)>,
    /// Objects that were recalled as a whole and taken out of `known`.
    recalling: BTreeMap<FileId, Mark>,
    /// The last mark given.
    mark: Mark,
    cleared: Mark,
}

impl Knowledge {
    /// Whether the object was granted and not recalled as a whole since.
    pub(super) fn knows(&self, id: FileId) -> bool {
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
        self.known.len() + self.leaving.as_ref().map_or(0, |(ids, _)| ids.len())
    }

    /// Bytes that the sets take.
    pub(super) fn bytes(&self) -> usize {
        self.known.bytes() + self.leaving.as_ref().map_or(0, |(ids, _)| ids.bytes())
    }

    /// Whether everything was recalled and may still be believed.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// The last mark given.
    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// Up to where all is forgotten.
    pub(super) fn cleared(&self) -> Mark {
        self.cleared
    }

    /// What must be cleared before an object that was recalled is no longer believed; nothing when it is not.
    pub(super) fn pending(&self, id: FileId) -> Option<Mark> {
        let leaving = self.leaving.as_ref().filter(|(ids, _)| ids.contains(id)).map(|(_, mark)| *mark);
        leaving.max(self.recalling.get(&id).copied()).filter(|mark| *mark > self.cleared)
    }

    /// Something about the object has to be forgotten, or all of it.
    pub(super) fn recall(&mut self, id: FileId, is_whole: bool) {
        self.mark.0 += 1;
        if is_whole {
            self.known.remove(id);
            self.recalling.insert(id, self.mark);
        }
    }

    /// Everything has to be forgotten.
    pub(super) fn leave(&mut self) {
        self.mark.0 += 1;
        let known = std::mem::take(&mut self.known);
        if self.leaving.is_none() {
            self.leaving = Some((known, self.mark));
        }
    }

    /// What was marked up to here is forgotten.
    pub(super) fn clear(&mut self, mark: Mark) {
        self.cleared = self.cleared.max(mark);
        if self.leaving.as_ref().is_some_and(|(_, mark)| *mark <= self.cleared) {
            self.leaving = None;
        }
    }

    /// These objects are looked up no longer, as far as they are forgotten. At most `pending_max` can be left.
    pub(super) fn trim(&mut self, ids: impl Iterator<Item = FileId>, pending_max: usize) {
        for id in ids {
            if self.recalling.get(&id).is_some_and(|mark| *mark <= self.cleared) {
                self.recalling.remove(&id);
            }
        }
        if self.recalling.len() > pending_max {
            self.recalling.retain(|_, mark| *mark > self.cleared);
        }
    }

    /// All that was marked is forgotten.
    pub(super) fn clear_all(&mut self) {
        self.clear(self.mark);
        self.recalling.clear();
    }
}

#[cfg(test)]
mod tests;
