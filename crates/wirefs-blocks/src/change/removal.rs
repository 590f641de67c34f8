//! Removing the parts of objects that have no name any more, and of files beyond their end.

use super::Change;
use super::data::Progress;
use crate::halt::Halt;
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
        let found = self.view.get(Key::head(ino))?;
        let Some(mut head) = found.map(Head::decode).transpose()? else {
            self.put(Key::dead(ino), None);
            return Ok(Progress::Done);
        };
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
