//! Looking names up and listing them.

use super::View;
use crate::halt::Halt;
use crate::item::{Entry, first_place, last_place};
use crate::key::{Ino, Key, Part};
use crate::limits::TWINS_MAX;
use std::ops::RangeInclusive;
use wirefs_op::Errno;

/// All items that may be named so.
pub(crate) fn places(ino: Ino, part: Part, name: &[u8]) -> RangeInclusive<Key> {
    Key::new(ino, part, first_place(name))..=Key::new(ino, part, last_place(name))
}

impl View<'_> {
    /// What `name` in `dir` is, and where it stands.
    pub(crate) fn find(&self, dir: Ino, name: &[u8]) -> Result<Option<(Key, Entry)>, Halt> {
        for item in self.scan(places(dir, Part::Entry, name), TWINS_MAX as usize)? {
            let entry = Entry::decode(item.value)?;
            if entry.name == name {
                return Ok(Some((item.key, entry)));
            }
        }
        Ok(None)
    }

    /// What `name` in `dir` is.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn lookup(&self, dir: Ino, name: &[u8]) -> Result<Entry, Halt> {
        self.find(dir, name)?.map(|(_, entry)| entry).ok_or(Halt::Failed(Errno::NotFound))
    }

    /// The entries of a directory behind a place, each with its own, at most `limit` of them.
    pub(crate) fn list(&self, dir: Ino, after: u64, limit: usize) -> Result<Vec<(u64, Entry)>, Halt> {
        let Some(first) = after.checked_add(1) else { return Ok(Vec::new()) };
        let range = Key::new(dir, Part::Entry, first)..=Key::new(dir, Part::Entry, u64::MAX);
        let items = self.scan(range, limit)?.into_iter();
        items.map(|item| Ok((item.key.sub, Entry::decode(item.value)?))).collect()
    }
}
