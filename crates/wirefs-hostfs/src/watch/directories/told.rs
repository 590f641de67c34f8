//! Where objects were told of of late that are watched through the directory that they are in: so that one can be looked at
//! again.

use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use wirefs_op::FileId;

/// Objects at most; the server asks again about no more than this.
const TOLD_MAX: usize = 1024;

/// The number of a directory's watch, and the name in it, by object.
#[derive(Debug, Default)]
pub(super) struct Told {
    places: HashMap<FileId, (i32, CString)>,
    /// The first was told of first.
    order: VecDeque<FileId>,
}

impl Told {
    /// An object was told of that has this name.
    pub(super) fn insert(&mut self, id: FileId, number: i32, name: &CString) {
        if self.places.insert(id, (number, name.clone())).is_some() {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > TOLD_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.places.remove(&oldest);
        }
    }

    /// Where the object was told of last; it may be elsewhere by now.
    pub(super) fn place(&self, id: FileId) -> Option<(i32, CString)> {
        self.places.get(&id).cloned()
    }
}

#[cfg(test)]
mod tests;
