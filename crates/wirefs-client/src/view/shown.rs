//! Attributes that programs saw before the server had the object, and that are shown further on.

use crate::view::unconfirmed::Ahead;
use std::collections::{BTreeMap, VecDeque};
use wirefs_op::{FileId, Kind, Stat, Timestamp};

/// The maximum number of objects that are shown with other attributes than the server's.
pub(crate) const SHOWN_MAX: usize = 128 * 1024;

/// Attributes that are shown instead of the server's, so that they do not change for programs that saw the object before the server
/// had it. Each pair has the server's value and the shown value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownAs {
    pub(crate) ino: u64,
    pub(crate) atime: (Timestamp, Timestamp),
    pub(crate) mtime: (Timestamp, Timestamp),
    pub(crate) ctime: (Timestamp, Timestamp),
    pub(crate) blocks: (u64, u64),
    /// The size of a directory, which each file system counts in its own way.
    pub(crate) size: (u64, u64),
}

impl ShownAs {
    /// Shows `shown` in place of the server's attributes `real`.
    pub(crate) fn of(ino: u64, real: &Stat, shown: &Stat) -> ShownAs {
        ShownAs {
            ino,
            atime: (real.atime, shown.atime),
            mtime: (real.mtime, shown.mtime),
            ctime: (real.ctime, shown.ctime),
            blocks: (real.blocks, shown.blocks),
            size: (real.size, shown.size),
        }
    }
}

pub(crate) fn shown<T: PartialEq>((real, shown): (T, T), is: T) -> T {
    if is == real { shown } else { is }
}

/// The shown attributes, by object.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) shown_as: BTreeMap<FileId, ShownAs>,
    /// The objects by the inode numbers that are shown.
    pub(crate) inos: BTreeMap<u64, FileId>,
    /// Oldest first.
    pub(crate) order: VecDeque<FileId>,
}

impl Shown {
    pub(crate) fn tell(&mut self, id: FileId, shown_as: ShownAs) {
        let is_new = !self.shown_as.contains_key(&id);
        self.forget(id);
        self.inos.insert(shown_as.ino, id);
        self.shown_as.insert(id, shown_as);
        if is_new {
            self.order.push_back(id);
            if self.order.len() > SHOWN_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.forget(oldest);
            }
        }
    }

    /// Shows an object with the server's attributes again.
    pub(crate) fn forget(&mut self, id: FileId) {
        if let Some(shown_as) = self.shown_as.remove(&id)
            && self.inos.get(&shown_as.ino) == Some(&id)
        {
            self.inos.remove(&shown_as.ino);
        }
    }
}

/// An inode number for an object whose own number is shown for another object. It is outside the range that file
/// systems use.
pub(crate) fn other_ino(id: FileId) -> u64 {
    ino_of(id) ^ (1 << 61) ^ (u64::from(id.generation) << 28)
}

impl Ahead {
    /// The attributes as they were shown before the server had the object, as far as they are the same there.
    pub(crate) fn shown(&self, stat: &Stat) -> Stat {
        self.shown.shown_as.get(&stat.id).map_or(*stat, |shown_as| Stat {
            atime: shown(shown_as.atime, stat.atime),
            mtime: shown(shown_as.mtime, stat.mtime),
            ctime: shown(shown_as.ctime, stat.ctime),
            size: if stat.kind == Kind::Directory { shown(shown_as.size, stat.size) } else { stat.size },
            // A file's come and go while its data find their places.
            blocks: if stat.kind == Kind::File { stat.blocks } else { shown(shown_as.blocks, stat.blocks) },
            ..*stat
        })
    }

    /// The inode number that it was shown by; another one than its own too where that is another object's here.
    pub(crate) fn shown_ino(&self, id: FileId) -> Option<u64> {
        // No other object is shown by the number of a provisional id: it is this one's, which the server may have confirmed since.
        let is_taken = || id.provisional_number().is_none() && self.shown.inos.contains_key(&ino_of(id));
        self.shown
            .shown_as
            .get(&id)
            .map(|shown_as| shown_as.ino)
            .or_else(|| is_taken().then(|| other_ino(id)))
    }
}

/// The inode number that is shown for an object by default.
pub(crate) fn ino_of(id: FileId) -> u64 {
    id.ino ^ (u64::from(id.fs) << 32).rotate_left(7)
}

#[cfg(test)]
mod tests;
