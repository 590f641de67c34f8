//! Removing the parts of objects that have no name any more, and of files beyond their end.

use super::Change;
use super::data::Progress;
use crate::halt::{Halt, both};
use crate::item::{Body, Head, Xattr};
use crate::key::{Ino, Key, Part};
use crate::limits::RUNS_REMOVED_MAX;
use bytes::Bytes;

impl Change<'_> {
    /// Removes an object that has lost its last name; what is open, or large, only later.
    pub(super) fn remove_or_orphan(&mut self, ino: Ino, mut head: Head) -> Result<(), Halt> {
        let id = Self::id_of(ino, &head);
        if self.basis.opens.condemn(id) && self.purge(ino, &mut head)? == Progress::Done {
            return Ok(());
        }
        self.put_head(ino, &head);
        self.put(Key::dead(ino), Some(Bytes::new()));
        self.orphaned.push(id);
        Ok(())
    }

    /// Notes that an object whose head cannot be had has lost one more name.
    pub(super) fn note_name_lost(&mut self, ino: Ino) -> Result<(), Halt> {
        let names = names_lost(self.view.get(Key::dead(ino))?).saturating_add(1);
        self.put(Key::dead(ino), Some(Bytes::copy_from_slice(&[names])));
        Ok(())
    }

    /// Takes from an object, whose head is there again, the names that it lost meanwhile.
    fn catch_up(&mut self, ino: Ino, head: &mut Head, names: u8) {
        head.nlink = if head.is_directory() { 0 } else { head.nlink.saturating_sub(names.into()) };
        self.touch(head);
        self.put_head(ino, head);
        let is_dead = head.nlink == 0 || head.is_trimmed;
        self.put(Key::dead(ino), is_dead.then(Bytes::new));
        if head.nlink == 0 {
            // It may be open.
            self.orphaned.push(Self::id_of(ino, head));
        }
    }

    /// Removes parts of an object, and the head when they are all gone.
    fn purge(&mut self, ino: Ino, head: &mut Head) -> Result<Progress, Halt> {
        if head.body == Body::Pieces && !self.remove_pieces(ino, head, 0..u64::MAX, RUNS_REMOVED_MAX)? {
            return Ok(Progress::Again);
        }
        let xattrs = Key::new(ino, Part::Xattr, 0)..=Key::new(ino, Part::Xattr, u64::MAX);
        if head.xattrs > 0 {
            for item in self.view.scan(xattrs, usize::MAX)? {
                self.drop_value(item.key, &Xattr::decode(item.value)?.value);
                self.put(item.key, None);
            }
        }
        if head.is_trimmed {
            self.put(Key::dead(ino), None);
        }
        self.put(Key::head(ino), None);
        Ok(Progress::Done)
    }

    /// Removes runs beyond a file's end, so many at most, and notes whether some are left.
    pub(super) fn trim(&mut self, ino: Ino, head: &mut Head, runs_max: usize) -> Result<(), Halt> {
        let first_gone = head.size.div_ceil(self.view.geometry.piece_bytes());
        let is_done = self.remove_pieces(ino, head, first_gone..u64::MAX, runs_max)?;
        if is_done && head.is_trimmed && head.nlink > 0 {
            self.put(Key::dead(ino), None);
        }
        if !is_done {
            self.put(Key::dead(ino), Some(Bytes::new()));
            self.trimmed.push(Self::id_of(ino, head));
        }
        head.is_trimmed = !is_done;
        if is_done && head.size == 0 {
            head.body = Body::Inline(Bytes::new());
        }
        Ok(())
    }

    /// Goes on with what is noted as dead: an object without a name, or a file that was cut off.
    pub(crate) fn reap(&mut self, ino: Ino) -> Result<Progress, Halt> {
        let (found, noted) = both(self.view.get(Key::head(ino)), self.view.get(Key::dead(ino)))?;
        let Some(mut head) = found.map(Head::decode).transpose()? else {
            self.put(Key::dead(ino), None);
            return Ok(Progress::Done);
        };
        let names = names_lost(noted);
        if names > 0 {
            self.catch_up(ino, &mut head, names);
            return Ok(Progress::done_if(head.nlink > 0 && !head.is_trimmed));
        }
        if head.nlink == 0 && self.basis.opens.condemn(Self::id_of(ino, &head)) {
            let progress = self.purge(ino, &mut head)?;
            match progress {
                Progress::Done => self.put(Key::dead(ino), None),
                Progress::Again => self.put_head(ino, &head),
            }
            return Ok(progress);
        }
        if !head.is_trimmed {
            return Ok(Progress::Done);
        }
        self.trim(ino, &mut head, RUNS_REMOVED_MAX)?;
        self.put_head(ino, &head);
        Ok(Progress::done_if(!head.is_trimmed))
    }
}

/// How many names an object has lost while its head could not be had, as the note says that it is dead.
fn names_lost(noted: Option<Bytes>) -> u8 {
    noted.and_then(|names| names.first().copied()).unwrap_or(0)
}
