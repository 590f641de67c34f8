//! The ids of handles that were met lately.

use crate::watch::events::Handle;
use std::collections::HashMap;
use wirefs_op::FileId;

/// Handles in each of the two halves; together some 4 MiB.
const HALF_MAX: usize = 1 << 14;

/// Handles and their ids. A handle means the same object for ever, or none, so nothing here becomes wrong while its file
/// system stays; what was not met for long is forgotten.
#[derive(Debug, Default)]
pub(super) struct Known {
    young: HashMap<Handle, FileId>,
    old: HashMap<Handle, FileId>,
}

impl Known {
    pub(super) fn find(&mut self, handle: &Handle) -> Option<FileId> {
        if let Some(id) = self.young.get(handle) {
            return Some(*id);
        }
        let (handle, id) = self.old.remove_entry(handle)?;
        self.insert(handle, id);
        Some(id)
    }

    pub(super) fn clear(&mut self) {
        *self = Known::default();
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
