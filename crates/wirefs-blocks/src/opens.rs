//! Open objects. An open object outlives its last name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::FileId;

/// The open objects of the live tree.
///
/// ```text
/// open ──last name removed──> orphan ──last fd closed──> backlog ──items removed──> gone
///  └──────────last name removed, no fd: removing, while the change runs──────────────┘
/// ```
#[derive(Debug, Default)]
pub(crate) struct Opens(Mutex<OpenObjects>);

/// The state behind the lock of [`Opens`].
#[derive(Debug, Default)]
struct OpenObjects {
    /// The open count of each object.
    counts: BTreeMap<FileId, usize>,
    /// Open objects without a name.
    orphans: BTreeSet<FileId>,
    /// Objects that the running change removes. They cannot be opened.
    removing: BTreeSet<FileId>,
    /// Closed objects without a name whose items are not all removed.
    backlog: BTreeSet<FileId>,
    /// Truncated files whose blocks beyond the end are not all removed.
    trims: BTreeSet<FileId>,
}

impl Opens {
    fn state(&self) -> MutexGuard<'_, OpenObjects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Increments the open count; returns `false` if the object is being removed.
    pub(crate) fn hold(&self, id: FileId) -> bool {
        let mut state = self.state();
        if state.removing.contains(&id) {
            return false;
        }
        // Created without a name, and opened by its creator.
        if state.backlog.remove(&id) {
            state.orphans.insert(id);
        }
        *state.counts.entry(id).or_default() += 1;
        true
    }

    /// Decrements the open count.
    pub(crate) fn release(&self, id: FileId) {
        let mut state = self.state();
        let Some(count) = state.counts.get_mut(&id) else { return };
        *count -= 1;
        if *count == 0 {
            state.counts.remove(&id);
            if state.orphans.remove(&id) {
                state.backlog.insert(id);
            }
        }
    }

    /// Marks an object as being removed until [`Opens::end_removals`]; returns `false` if it is open.
    pub(crate) fn begin_removal(&self, id: FileId) -> bool {
        let mut state = self.state();
        let is_free = !state.counts.contains_key(&id);
        if is_free {
            state.removing.insert(id);
        }
        is_free
    }

    /// Clears all removal marks at the end of a change.
    pub(crate) fn end_removals(&self) {
        self.state().removing.clear();
    }

    /// Records that an object lost its last name and still has items.
    pub(crate) fn orphan(&self, id: FileId) {
        let mut state = self.state();
        if state.counts.contains_key(&id) {
            state.orphans.insert(id);
        } else {
            state.backlog.insert(id);
        }
    }

    /// Records that an object gained a name again.
    pub(crate) fn adopt(&self, id: FileId) {
        let mut state = self.state();
        state.orphans.remove(&id);
        state.backlog.remove(&id);
    }

    /// Records that a truncated file has blocks beyond its end.
    pub(crate) fn trim(&self, id: FileId) {
        self.state().trims.insert(id);
    }

    /// Records that nothing of an object remains to be removed, or can be.
    pub(crate) fn mark_clean(&self, id: FileId) {
        let mut state = self.state();
        state.backlog.remove(&id);
        state.trims.remove(&id);
    }

    /// Forgets all orphans because another tree has become the live tree. They are read again from that tree.
    pub(crate) fn clear_orphans(&self) {
        let mut state = self.state();
        state.orphans.clear();
        state.backlog.clear();
        state.trims.clear();
    }

    /// Returns the next object to remove or truncate.
    pub(crate) fn next_in_backlog(&self) -> Option<FileId> {
        let state = self.state();
        state.backlog.first().or(state.trims.first()).copied()
    }

    /// The number of objects to remove or truncate.
    pub(crate) fn backlog(&self) -> usize {
        let state = self.state();
        state.backlog.len() + state.trims.len()
    }
}
