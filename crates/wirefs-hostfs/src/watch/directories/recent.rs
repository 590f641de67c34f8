//! The names of recently reported objects that are watched through their directories, so that their versions can be
//! read again.

use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use wirefs_op::FileId;

/// Objects at most; the server verifies no more than this.
const RECENT_MAX: usize = 1024;

/// The number of the directory's watch, and the name in it, by object.
#[derive(Debug, Default)]
pub(super) struct RecentReports {
    places: HashMap<FileId, (i32, CString)>,
    /// The objects, the oldest report first.
    order: VecDeque<FileId>,
}

impl RecentReports {
    /// Notes the name of a reported object.
    pub(super) fn insert(&mut self, id: FileId, number: i32, name: &CString) {
        if self.places.insert(id, (number, name.clone())).is_some() {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > RECENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.places.remove(&oldest);
        }
    }

    /// The directory and name at the last report; the object may have moved since.
    pub(super) fn place(&self, id: FileId) -> Option<(i32, CString)> {
        self.places.get(&id).cloned()
    }
}

#[cfg(test)]
mod tests;
