//! Lookup and listing of names.

use super::View;
use crate::halt::Halt;
use crate::item::{Entry, first_position, last_position};
use crate::key::{Ino, Key, Part};
use crate::limits::HASH_COLLISIONS_MAX;
use std::ops::RangeInclusive;
use wirefs_op::Errno;

/// Returns the keys of all items with the hash of this name.
pub(crate) fn positions(ino: Ino, part: Part, name: &[u8]) -> RangeInclusive<Key> {
    Key::new(ino, part, first_position(name))..=Key::new(ino, part, last_position(name))
}

impl View<'_> {
    /// Looks up `name` in `dir`; returns its key, too.
    pub(crate) fn find(&self, dir: Ino, name: &[u8]) -> Result<Option<(Key, Entry)>, Halt> {
        for item in self.scan(positions(dir, Part::Entry, name), HASH_COLLISIONS_MAX as usize)? {
            let entry = Entry::decode(item.value)?;
            if entry.name == name {
                return Ok(Some((item.key, entry)));
            }
        }
        Ok(None)
    }

    /// Looks up `name` in `dir`.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Entry, Halt> {
        self.find(dir, name)?.map(|(_, entry)| entry).ok_or(Halt::Failed(Errno::NotFound))
    }

    /// Returns at most `limit` entries of a directory after a position, each with its position.
    pub(crate) fn list(&self, dir: Ino, after: u64, limit: usize) -> Result<Vec<(u64, Entry)>, Halt> {
        let Some(first) = after.checked_add(1) else { return Ok(Vec::new()) };
        let range = Key::new(dir, Part::Entry, first)..=Key::new(dir, Part::Entry, u64::MAX);
        let items = self.scan(range, limit)?.into_iter();
        items.map(|item| Ok((item.key.sub, Entry::decode(item.value)?))).collect()
    }
}
