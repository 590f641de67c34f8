//! Objects of requests: open files, and paths.

use std::sync::Arc;

use wirefs_op::message::target::{Place, Target};
use wirefs_op::{Errno, FileId, Kind, Stat, TreePath};

use super::{At, Client, Failure, OpenFile};
use crate::attributes::kind_of;
use crate::message::open;

impl Client {
    /// Returns the file of a target's fd, unless its connection is lost or another object is meant.
    pub(super) fn find(&self, target: &Target) -> Option<Arc<OpenFile>> {
        let file = self.files.find(target.fd)?;
        let is_it = target.id.is_none_or(|id| id.ino == file.ino);
        (is_it && !file.handle.is_lost()).then_some(file)
    }
}

/// A name in a directory.
pub(super) struct Named<'p> {
    pub(super) parent: u64,
    pub(super) name: &'p [u8],
    pub(super) parent_path: Vec<u8>,
    pub(super) path: Vec<u8>,
}

impl At<'_> {
    /// Returns the server's path of a path in the session.
    pub(super) fn full(&self, path: &TreePath) -> Vec<u8> {
        let mut full = self.tree.base.clone();
        for name in self.client.root.names().chain(path.names()) {
            full.push(b'/');
            full.extend_from_slice(name);
        }
        if full.is_empty() { b"/".to_vec() } else { full }
    }

    /// Returns the inode number of a path in the session.
    pub(super) fn ino(&self, path: &TreePath) -> u64 {
        self.tree.ids.of_names(self.client.root.names().chain(path.names()))
    }

    /// Returns the inode number of a target's path.
    ///
    /// # Errors
    /// `ESTALE`: the path has another object.
    pub(super) fn ino_of(&self, target: &Target) -> Result<u64, Errno> {
        self.checked(&target.path, target.id)
    }

    fn checked(&self, path: &TreePath, id: Option<FileId>) -> Result<u64, Errno> {
        let ino = self.ino(path);
        if id.is_none_or(|id| id.ino == ino) { Ok(ino) } else { Err(Errno::Stale) }
    }

    /// Returns a name, whose directory must be the one that is meant.
    pub(super) fn named<'p>(&self, place: &'p Place) -> Result<Named<'p>, Errno> {
        let (above, name) = place.path.split_last().ok_or(Errno::Busy)?;
        let parent = self.checked(&above, place.dir)?;
        Ok(Named { parent, name, parent_path: self.full(&above), path: self.full(&place.path) })
    }

    /// Returns the attributes of the object at a path.
    pub(super) fn stat_at(&self, path: &TreePath) -> Result<Stat, Failure> {
        let attributes = self.remote.lstat(&self.full(path))?.attributes()?;
        Ok(attributes.stat(self.ino(path)))
    }

    /// Returns the attributes of a target.
    ///
    /// # Errors
    /// `ESTALE`: another object is there.
    pub(super) fn stat(&self, target: &Target) -> Result<Stat, Failure> {
        if let Some(file) = self.client.find(target) {
            return Ok(self.remote.fstat(&file.handle)?.attributes()?.stat(file.ino));
        }
        let ino = self.ino_of(target)?;
        let stat = self.remote.lstat(&self.full(&target.path))?.attributes()?.stat(ino);
        check_kind(&stat, target.id)?;
        Ok(stat)
    }

    /// Returns the open file of a target, or one that is opened now.
    pub(super) fn open_file(
        &self,
        target: &Target,
        reads: bool,
        writes: bool,
    ) -> Result<Arc<OpenFile>, Failure> {
        let open = self.client.find(target);
        if let Some(file) = open.filter(|file| (!reads || file.reads) && (!writes || file.writes)) {
            return Ok(file);
        }
        let ino = self.ino_of(target)?;
        let path = self.full(&target.path);
        self.check_is_file(target, &path)?;
        let flags = if reads || !writes { open::READ } else { 0 } | if writes { open::WRITE } else { 0 };
        let handle = self.remote.opened(self.remote.open(&path, flags)?)?;
        Ok(Arc::new(OpenFile { handle, ino, reads: reads || !writes, writes }))
    }

    /// Fails for an object that is no file. An open of a pipe would block the server, so an unknown kind is asked for.
    pub(super) fn check_is_file(&self, target: &Target, path: &[u8]) -> Result<(), Failure> {
        let kind = match target.id.and_then(kind_of) {
            Some(kind) => kind,
            None => self.remote.lstat(path)?.attributes()?.kind(),
        };
        match kind {
            Kind::File => Ok(()),
            Kind::Directory => Err(Errno::IsDirectory.into()),
            Kind::Symlink => Err(Errno::Loop.into()),
            Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
                Err(Errno::NoSuchDevice.into())
            }
        }
    }
}

/// Fails if an object is of another kind than the one that is meant.
pub(super) fn check_kind(stat: &Stat, id: Option<FileId>) -> Result<(), Errno> {
    if id.is_none_or(|id| id.generation == stat.id.generation) { Ok(()) } else { Err(Errno::Stale) }
}
