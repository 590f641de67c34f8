//! The set of objects that a holder was granted: exact, about 16 bytes each.
//!
//! Ids are stored completely. A fingerprint would be smaller but cannot be removed safely: when two objects
//! share one, the recall of the first also removes the second, whose next change would then recall nothing.

mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use table::Table;
use wirefs_op::FileId;

/// A set of objects.
///
/// # Cost
/// 15 to 19 bytes for each object while the set grows, and 2 KiB for each file system. Each operation is one
/// lookup in a small map of file systems and one in an open-addressing table; growth copies 1/64 of the
/// objects.
#[derive(Clone, Debug, Default)]
pub struct LeaseSet {
    by_fs: BTreeMap<u32, Table>,
    len: usize,
}

impl LeaseSet {
    /// Returns true if the set contains the object.
    pub fn contains(&self, id: FileId) -> bool {
        self.by_fs.get(&id.fs).is_some_and(|table| table.contains(id.ino, id.generation))
    }

    /// Inserts the object. Returns true if it is new.
    pub fn insert(&mut self, id: FileId) -> bool {
        let is_new = self.by_fs.entry(id.fs).or_default().insert(id.ino, id.generation);
        self.len += usize::from(is_new);
        is_new
    }

    /// Removes the object. Returns true if it was present.
    pub fn remove(&mut self, id: FileId) -> bool {
        let Some(table) = self.by_fs.get_mut(&id.fs) else { return false };
        let was_in = table.remove(id.ino, id.generation);
        if table.is_empty() {
            self.by_fs.remove(&id.fs);
        }
        self.len -= usize::from(was_in);
        was_in
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the memory of the tables in bytes.
    pub fn bytes(&self) -> usize {
        self.by_fs.values().map(Table::bytes).sum()
    }
}
