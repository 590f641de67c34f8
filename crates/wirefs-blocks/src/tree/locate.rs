//! Path resolution in the live tree and in checkpoints.

use crate::block_set::BlockSet;
use crate::change::{Basis, Change};
use crate::geometry::Geometry;
use crate::halt::Halt;
use crate::key::{Ino, ROOT};
use crate::map::Map;
use crate::view::View;
use crate::volume::{CHECKPOINTS_FS, Volume};
use wirefs_op::message::target::{Place, Target};
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Kind, Stat, Timestamp, TreePath};

/// The name of the checkpoint directory in the root directory. It exists while there are checkpoints.
pub(crate) const CHECKPOINTS_NAME: &[u8] = b".checkpoints";
/// The checkpoint directory.
pub(super) const CHECKPOINTS: FileId = FileId { fs: CHECKPOINTS_FS, ino: 1, generation: 0 };

/// Returns the root directory of a tree: 0 is the live tree, others are checkpoints by serial.
pub(super) fn root_of(fs: u32) -> FileId {
    FileId { fs, ino: ROOT.0, generation: 0 }
}

/// The trees of one volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trees<'a> {
    pub(super) volume: &'a Volume,
    pub(super) block_set: &'a BlockSet<'a>,
    pub(super) geometry: Geometry,
    pub(super) boot: BootId,
}

/// The session's root directory, and the object that the fd of the request refers to.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestContext {
    pub(super) root: FileId,
    pub(super) open_file: Option<FileId>,
}

/// The object that a request refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) id: FileId,
    pub(super) kind: Kind,
}

impl<'a> Trees<'a> {
    /// Returns the trees before a change.
    pub(super) fn of(change: &Change<'a>) -> Trees<'a> {
        let Basis { volume, block_set, geometry, boot, .. } = *change.basis();
        Trees { volume, block_set, geometry, boot }
    }

    pub(super) fn present(&self) -> View<'a> {
        let map = Map { block_set: self.block_set, root: Some(self.volume.root.files) };
        View::new(map, self.geometry, self.boot, 0)
    }

    /// Returns one of the trees.
    ///
    /// # Errors
    /// `Stale`: the checkpoint was dropped.
    pub(super) fn view(&self, fs: u32) -> Result<View<'a>, Halt> {
        let root = self.volume.files(fs).ok_or(Errno::Stale)?;
        Ok(View::new(Map { block_set: self.block_set, root: Some(root) }, self.geometry, self.boot, fs))
    }

    /// Looks up `name` in `dir`.
    pub(super) fn step(&self, dir: FileId, name: &[u8]) -> Result<Object, Halt> {
        if dir == CHECKPOINTS {
            let checkpoint = self.volume.checkpoint_named(name).ok_or(Errno::NotFound)?;
            return Ok(Object { id: root_of(checkpoint.serial), kind: Kind::Directory });
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

    /// Returns whether the checkpoint directory exists.
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

    /// Resolves `target` by its fd if that is the expected object, else by its path.
    pub(super) fn locate(&self, context: RequestContext, target: &Target) -> Result<Object, Halt> {
        match (target.id, context.open_file) {
            (Some(id), Some(open)) if id == open => Ok(Object { id, kind: self.kind(id)? }),
            (expected, _) => expect_object(self.walk(context.root, &target.path), expected),
        }
    }

    fn kind(&self, id: FileId) -> Result<Kind, Halt> {
        if id == CHECKPOINTS {
            return Ok(Kind::Directory);
        }
        let head = self.view(id.fs)?.head(Ino(id.ino))?;
        // After a restore, the inode number may belong to another object.
        if head.generation == id.generation { Ok(head.kind) } else { Err(Halt::Failed(Errno::Stale)) }
    }

    /// Returns the directory at `path`.
    pub(super) fn directory(
        &self,
        context: RequestContext,
        path: &TreePath,
        expected: Option<FileId>,
    ) -> Result<FileId, Halt> {
        let found = self.walk(context.root, path).and_then(|object| {
            if object.kind == Kind::Directory { Ok(object) } else { Err(Halt::Failed(Errno::NotDirectory)) }
        });
        expect_object(found, expected).map(|object| object.id)
    }

    /// Returns the directory of `place` and the name in it; fails for the root.
    pub(super) fn entry<'p>(
        &self,
        context: RequestContext,
        place: &'p Place,
    ) -> Result<(FileId, &'p [u8]), Halt> {
        let (dir, name) = place.path.split_last().ok_or(Errno::Busy)?;
        Ok((self.directory(context, &dir, place.dir)?, name))
    }

    /// Returns the attributes of an object.
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
        let made = self.volume.checkpoints.iter().map(|checkpoint| checkpoint.made).max();
        let time = made.unwrap_or(Timestamp { secs: 0, nanos: 0 });
        Stat {
            id: CHECKPOINTS,
            kind: Kind::Directory,
            // Unique, because serials are never reused: no two sets of checkpoints agree in both numbers.
            version: self.boot.version((u64::from(self.volume.root.next_serial) << 32) | (count + 1)),
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
            // Commands are attributes of this directory.
            without_xattrs: false,
            leased: false,
        }
    }
}

/// Returns the object if it is the one that the client expects.
fn expect_object(found: Result<Object, Halt>, expected: Option<FileId>) -> Result<Object, Halt> {
    match (found, expected) {
        (Ok(object), Some(id)) if object.id != id => Err(Halt::Failed(Errno::Stale)),
        (Err(Halt::Failed(Errno::NotFound | Errno::NotDirectory)), Some(_)) => {
            Err(Halt::Failed(Errno::Stale))
        }
        (found, _) => found,
    }
}

/// Returns the directory if the name in it may be changed.
///
/// # Errors
/// `ReadOnly`: the directory is in a checkpoint. `NotPermitted`: the name is that of the checkpoint
/// directory.
pub(super) fn changeable(dir: FileId, name: &[u8]) -> Result<Ino, Errno> {
    if dir.fs != 0 {
        return Err(Errno::ReadOnly);
    }
    if dir == root_of(0) && name == CHECKPOINTS_NAME {
        return Err(Errno::NotPermitted);
    }
    Ok(Ino(dir.ino))
}
