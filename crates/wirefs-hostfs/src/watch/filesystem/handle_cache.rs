//! The ids of recently used handles.

use crate::watch::events::Handle;
use std::collections::HashMap;
use wirefs_op::FileId;

/// Handles in each half; both together have some 4 MiB.
const HALF_MAX: usize = 1 << 14;

/// A cache with two halves. A handle refers to the same object forever, or to none, so no entry becomes wrong while
/// its file system is mounted. Entries that were not used for long are evicted.
#[derive(Debug, Default)]
pub(super) struct HandleCache {
    young: HashMap<Handle, FileId>,
    old: HashMap<Handle, FileId>,
}

impl HandleCache {
    pub(super) fn find(&mut self, handle: &Handle) -> Option<FileId> {
        if let Some(id) = self.young.get(handle) {
            return Some(*id);
        }
        let (handle, id) = self.old.remove_entry(handle)?;
        self.insert(handle, id);
        Some(id)
    }

    pub(super) fn clear(&mut self) {
        *self = HandleCache::default();
    }

    pub(super) fn insert(&mut self, handle: Handle, id: FileId) {
        if self.young.len() >= HALF_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(handle, id);
    }
}

#[cfg(test)]
mod tests;
