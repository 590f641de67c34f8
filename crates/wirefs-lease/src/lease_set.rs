//! Which objects a holder was granted: exactly, and in about 16 bytes each.
//!
//! Ids are kept whole. A fingerprint of each would take less room, but it cannot be taken out again: of two objects with
//! one fingerprint, the recall of the first would make the server forget that the second is known as well, and the
//! second's next change would recall nothing.

mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use table::Table;
use wirefs_op::FileId;

/// A set of objects.
///
/// # Cost
/// 15 to 19 bytes for each object while it grows, and 2 KiB for each file system. Each operation is a look-up in an open
/// table, behind one in a small map of file systems; growing copies a 64th of the objects.
#[derive(Clone, Debug, Default)]
pub struct LeaseSet {
    by_fs: BTreeMap<u32, Table>,
    len: usize,
}

impl LeaseSet {
    /// Whether the object is in.
    pub fn contains(&self, id: FileId) -> bool {
        self.by_fs.get(&id.fs).is_some_and(|table| table.contains(id.ino, id.generation))
    }

    /// Takes the object in; true when it is new.
    pub fn insert(&mut self, id: FileId) -> bool {
        let is_new = self.by_fs.entry(id.fs).or_default().insert(id.ino, id.generation);
        self.len += usize::from(is_new);
        is_new
    }

    /// Takes the object out; true when it was in.
    pub fn remove(&mut self, id: FileId) -> bool {
        let Some(table) = self.by_fs.get_mut(&id.fs) else { return false };
        let was_in = table.remove(id.ino, id.generation);
        if table.is_empty() {
            self.by_fs.remove(&id.fs);
        }
        self.len -= usize::from(was_in);
        was_in
    }

    /// How many objects are in.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the tables take.
    pub fn bytes(&self) -> usize {
        self.by_fs.values().map(Table::bytes).sum()
    }
}
