//! Removal of items of unlinked objects and of blocks beyond the end of truncated files.

use super::Change;
use super::data::Progress;
use crate::halt::{Halt, both};
use crate::item::{Body, Head, Xattr};
use crate::key::{Ino, Key, Part};
use crate::limits::RUNS_REMOVED_MAX;
use bytes::Bytes;

impl Change<'_> {
    /// Removes an object that lost its last name. If it is open or large, it becomes an orphan that is
    /// removed later.
    pub(super) fn remove_or_orphan(&mut self, ino: Ino, mut head: Head) -> Result<(), Halt> {
        let id = Self::id_of(ino, &head);
        if self.basis.opens.begin_removal(id) && self.purge(ino, &mut head)? == Progress::Done {
            return Ok(());
        }
        self.put_head(ino, &head);
        self.put(Key::orphan(ino), Some(Bytes::new()));
        self.orphaned.push(id);
        Ok(())
    }

    /// Records that an object whose head is missing lost one more name.
    pub(super) fn record_lost_name(&mut self, ino: Ino) -> Result<(), Halt> {
        let names = lost_names(self.view.get(Key::orphan(ino))?).saturating_add(1);
        self.put(Key::orphan(ino), Some(Bytes::copy_from_slice(&[names])));
        Ok(())
    }

    /// Applies recorded name losses to an object whose head is available again.
    fn apply_lost_names(&mut self, ino: Ino, head: &mut Head, names: u8) {
        head.nlink = if head.is_directory() { 0 } else { head.nlink.saturating_sub(names.into()) };
        self.touch(head);
        self.put_head(ino, head);
        let is_dead = head.nlink == 0 || head.is_trimmed;
        self.put(Key::orphan(ino), is_dead.then(Bytes::new));
        if head.nlink == 0 {
            // The object may be open.
            self.orphaned.push(Self::id_of(ino, head));
        }
    }

    /// Removes items of an object, and its head once they are all removed.
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
            self.put(Key::orphan(ino), None);
        }
        self.put(Key::head(ino), None);
        Ok(Progress::Done)
    }

    /// Removes at most `runs_max` runs beyond the end of a file, and records whether some remain.
    pub(super) fn trim(&mut self, ino: Ino, head: &mut Head, runs_max: usize) -> Result<(), Halt> {
        let first_gone = head.size.div_ceil(self.view.geometry.piece_bytes());
        let is_done = self.remove_pieces(ino, head, first_gone..u64::MAX, runs_max)?;
        if is_done && head.is_trimmed && head.nlink > 0 {
            self.put(Key::orphan(ino), None);
        }
        if !is_done {
            self.put(Key::orphan(ino), Some(Bytes::new()));
            self.trimmed.push(Self::id_of(ino, head));
        }
        head.is_trimmed = !is_done;
        if is_done && head.size == 0 {
            head.body = Body::Inline(Bytes::new());
        }
        Ok(())
    }

    /// Continues the removal of an orphan or the truncation of a file.
    pub(crate) fn reap(&mut self, ino: Ino) -> Result<Progress, Halt> {
        let (found, noted) = both(self.view.get(Key::head(ino)), self.view.get(Key::orphan(ino)))?;
        let Some(mut head) = found.map(Head::decode).transpose()? else {
            self.put(Key::orphan(ino), None);
            return Ok(Progress::Done);
        };
        let names = lost_names(noted);
        if names > 0 {
            self.apply_lost_names(ino, &mut head, names);
            return Ok(Progress::done_if(head.nlink > 0 && !head.is_trimmed));
        }
        if head.nlink == 0 && self.basis.opens.begin_removal(Self::id_of(ino, &head)) {
            let progress = self.purge(ino, &mut head)?;
            match progress {
                Progress::Done => self.put(Key::orphan(ino), None),
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

/// Returns the number of recorded name losses in an orphan item.
fn lost_names(noted: Option<Bytes>) -> u8 {
    noted.and_then(|names| names.first().copied()).unwrap_or(0)
}
