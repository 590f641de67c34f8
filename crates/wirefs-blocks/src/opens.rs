//! Which objects are open, so that they outlive their names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::FileId;

/// Open objects of the present tree.
///
/// ```text
/// open ──last name gone──> orphan ──last fd closed──> backlog ──removed──> gone
///  └──────────last name gone, no fd: condemned while the change is under way──┘
/// ```
#[derive(Debug, Default)]
pub(crate) struct Opens(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How often each is open.
    counts: BTreeMap<FileId, usize>,
    /// Open and without a name.
    orphans: BTreeSet<FileId>,
    /// Being removed by the change that is under way: cannot be opened.
    condemned: BTreeSet<FileId>,
    /// Without a name, not open, their parts not all removed yet.
    backlog: BTreeSet<FileId>,
    /// Cut off, their blocks beyond the end not all removed yet.
    trims: BTreeSet<FileId>,
}

impl Opens {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens an object once more; false when it is being removed.
    pub(crate) fn hold(&self, id: FileId) -> bool {
        let mut state = self.state();
        if state.condemned.contains(&id) {
            return false;
        }
        // Made without a name, and opened by who made it.
        if state.backlog.remove(&id) {
            state.orphans.insert(id);
        }
        *state.counts.entry(id).or_default() += 1;
        true
    }

    /// Closes it once.
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

    /// Asks to remove an object's parts; false while it is open. True holds until [`Opens::absolve`].
    pub(crate) fn condemn(&self, id: FileId) -> bool {
        let mut state = self.state();
        let is_free = !state.counts.contains_key(&id);
        if is_free {
            state.condemned.insert(id);
        }
        is_free
    }

    /// The change that condemned objects is over.
    pub(crate) fn absolve(&self) {
        self.state().condemned.clear();
    }

    /// An object has lost its last name, and its parts are still there.
    pub(crate) fn orphan(&self, id: FileId) {
        let mut state = self.state();
        if state.counts.contains_key(&id) {
            state.orphans.insert(id);
        } else {
            state.backlog.insert(id);
        }
    }

    /// An object has got a name again.
    pub(crate) fn adopt(&self, id: FileId) {
        let mut state = self.state();
        state.orphans.remove(&id);
        state.backlog.remove(&id);
    }

    /// A file was cut off, and there are blocks left beyond its end.
    pub(crate) fn trim(&self, id: FileId) {
        self.state().trims.insert(id);
    }

    /// There is nothing more to be removed of an object, or nothing that can be.
    pub(crate) fn settled(&self, id: FileId) {
        let mut state = self.state();
        state.backlog.remove(&id);
        state.trims.remove(&id);
    }

    /// Another tree has become the present one: what is dead in it is to be found out.
    pub(crate) fn forget_dead(&self) {
        let mut state = self.state();
        state.orphans.clear();
        state.backlog.clear();
        state.trims.clear();
    }

    /// An object of which something is to be removed.
    pub(crate) fn next_in_backlog(&self) -> Option<FileId> {
        let state = self.state();
        state.backlog.first().or(state.trims.first()).copied()
    }

    /// How many objects wait for something to be removed.
    pub(crate) fn backlog(&self) -> usize {
        let state = self.state();
        state.backlog.len() + state.trims.len()
    }
}
