//! Which object a request means: the present tree, the checkpoints beside it, and the way from name to name.

use crate::change::{Basis, Change};
use crate::geometry::Geometry;
use crate::halt::Halt;
use crate::key::{Ino, ROOT};
use crate::map::Map;
use crate::shelf::Shelf;
use crate::view::View;
use crate::volume::{CHECKPOINTS_FS, Volume};
use wirefs_op::message::target::{Place, Target};
use wirefs_op::{Errno, FileId, Kind, Stat, Timestamp, TreePath};

/// The name in the root directory under which the checkpoints are, as long as there are any.
pub(crate) const CHECKPOINTS_NAME: &[u8] = b".checkpoints";
/// The directory of checkpoints.
pub(super) const CHECKPOINTS: FileId = FileId { fs: CHECKPOINTS_FS, ino: 1, generation: 0 };

/// The root directory of a tree: 0 is the present one, others are checkpoints by their serial.
pub(super) fn root_of(fs: u32) -> FileId {
    FileId { fs, ino: ROOT.0, generation: 0 }
}

/// The trees of one volume, with the blocks at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trees<'a> {
    pub(super) volume: &'a Volume,
    pub(super) shelf: &'a Shelf<'a>,
    pub(super) geometry: Geometry,
}

/// What a session brings to a request: where its paths begin, and what the request's fd stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) root: FileId,
    pub(super) kept: Option<FileId>,
}

/// An object that a request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) id: FileId,
    pub(super) kind: Kind,
}

impl<'a> Trees<'a> {
    /// The trees as they are before a change.
    pub(super) fn of(change: &Change<'a>) -> Trees<'a> {
        let Basis { volume, shelf, geometry, .. } = *change.basis();
        Trees { volume, shelf, geometry }
    }

    pub(super) fn present(&self) -> View<'a> {
        let map = Map { shelf: self.shelf, root: Some(self.volume.root.files) };
        View::new(map, self.geometry, 0)
    }

    /// One of the trees.
    ///
    /// # Errors
    /// `Stale`: that checkpoint is gone.
    pub(super) fn view(&self, fs: u32) -> Result<View<'a>, Halt> {
        let root = self.volume.files(fs).ok_or(Errno::Stale)?;
        Ok(View::new(Map { shelf: self.shelf, root: Some(root) }, self.geometry, fs))
    }

    /// What `name` in the directory `dir` is.
    pub(super) fn step(&self, dir: FileId, name: &[u8]) -> Result<Object, Halt> {
        if dir == CHECKPOINTS {
            let kept = self.volume.checkpoint_named(name).ok_or(Errno::NotFound)?;
            return Ok(Object { id: root_of(kept.serial), kind: Kind::Directory });
        }
        if dir == root_of(0) && name == CHECKPOINTS_NAME {
            return if self.has_checkpoints() {
                Ok(Object { id: CHECKPOINTS, kind: Kind::Directory })
            } else {
                Err(Halt::Failed(Errno::NotFound))
            };
        }
        let entry = self.view(dir.fs)?.lookup(Ino(dir.ino), name)?;
        let id = FileId { fs: dir.fs, ino: entry.ino.0, generation: entry.generation };
        Ok(Object { id, kind: entry.kind })
    }

    /// Whether there is a directory of checkpoints.
    pub(super) fn has_checkpoints(&self) -> bool {
        !self.volume.checkpoints.is_empty()
    }

    pub(super) fn walk(&self, root: FileId, path: &TreePath) -> Result<Object, Halt> {
        let start = Object { id: root, kind: Kind::Directory };
        path.names().try_fold(start, |at, name| {
            if at.kind != Kind::Directory {
                return Err(Halt::Failed(Errno::NotDirectory));
            }
            self.step(at.id, name)
        })
    }

    /// The object that `target` means: by its fd where that is this object, else by its path, where it must be.
    pub(super) fn locate(&self, seat: Seat, target: &Target) -> Result<Object, Halt> {
        match (target.id, seat.kept) {
            (Some(id), Some(kept)) if id == kept => Ok(Object { id, kind: self.kind(id)? }),
            (expected, _) => meant(self.walk(seat.root, &target.path), expected),
        }
    }

    fn kind(&self, id: FileId) -> Result<Kind, Halt> {
        if id == CHECKPOINTS {
            return Ok(Kind::Directory);
        }
        let head = self.view(id.fs)?.head(Ino(id.ino))?;
        // An earlier tree may have been restored, and the number used for another object.
        if head.generation == id.generation { Ok(head.kind) } else { Err(Halt::Failed(Errno::Stale)) }
    }

    /// The directory at `path`.
    pub(super) fn directory(
        &self,
        seat: Seat,
        path: &TreePath,
        expected: Option<FileId>,
    ) -> Result<FileId, Halt> {
        let found = self.walk(seat.root, path).and_then(|object| {
            if object.kind == Kind::Directory { Ok(object) } else { Err(Halt::Failed(Errno::NotDirectory)) }
        });
        meant(found, expected).map(|object| object.id)
    }

    /// The directory of `place` and the name in it; the root is no entry.
    pub(super) fn entry<'p>(&self, seat: Seat, place: &'p Place) -> Result<(FileId, &'p [u8]), Halt> {
        let (dir, name) = place.path.split_last().ok_or(Errno::Busy)?;
        Ok((self.directory(seat, &dir, place.dir)?, name))
    }

    /// The attributes of an object.
    pub(super) fn stat(&self, id: FileId) -> Result<Stat, Halt> {
        if id == CHECKPOINTS {
            return Ok(self.stat_of_checkpoints());
        }
        let view = self.view(id.fs)?;
        let head = view.head(Ino(id.ino))?;
        if head.generation != id.generation {
            return Err(Halt::Failed(Errno::Stale));
        }
        Ok(view.stat_of(Ino(id.ino), &head))
    }

    fn stat_of_checkpoints(&self) -> Stat {
        let count = self.volume.checkpoints.len() as u64;
        let made = self.volume.checkpoints.iter().map(|kept| kept.made).max();
        let time = made.unwrap_or(Timestamp { secs: 0, nanos: 0 });
        Stat {
            id: CHECKPOINTS,
            kind: Kind::Directory,
            // Serials are never used again, so no two sets of checkpoints have both in common.
            version: (u64::from(self.volume.root.next_serial) << 32) | (count + 1),
            mode: 0o555,
            nlink: u32::try_from(count).unwrap_or(u32::MAX).saturating_add(2),
            uid: 0,
            gid: 0,
            rdev: 0,
            size: count,
            blocks: 0,
            blksize: 4096,
            atime: time,
            mtime: time,
            ctime: time,
            // By which it is asked about them.
            without_xattrs: false,
            leased: false,
        }
    }
}

/// What was found, if it is what the client expected.
fn meant(found: Result<Object, Halt>, expected: Option<FileId>) -> Result<Object, Halt> {
    match (found, expected) {
        (Ok(object), Some(id)) if object.id != id => Err(Halt::Failed(Errno::Stale)),
        (Err(Halt::Failed(Errno::NotFound | Errno::NotDirectory)), Some(_)) => {
            Err(Halt::Failed(Errno::Stale))
        }
        (found, _) => found,
    }
}

/// The live directory that a name is to be changed in.
///
/// # Errors
/// `ReadOnly`: it is a checkpoint's. `NotPermitted`: it is the name of the directory of checkpoints.
pub(super) fn changeable(dir: FileId, name: &[u8]) -> Result<Ino, Errno> {
    if dir.fs != 0 {
        return Err(Errno::ReadOnly);
    }
    if dir == root_of(0) && name == CHECKPOINTS_NAME {
        return Err(Errno::NotPermitted);
    }
    Ok(Ino(dir.ino))
}
