//! System calls on names.

use crate::fs::{Body, New, check_flags, check_target};
use crate::operation::OnName;
use crate::posix::Outcome;
use crate::posix::model::ModelWorld;
use wirefs_op::{Errno, Kind};

impl ModelWorld {
    pub(super) fn on_name(&mut self, on_name: &OnName) -> Result<Outcome, Errno> {
        match on_name {
            OnName::Mkdir { path, mode } => self.create(path, &self.new_object(Kind::Directory, *mode))?,
            OnName::Mkfifo { path, mode } => self.create(path, &self.new_object(Kind::Fifo, *mode))?,
            OnName::Symlink { target, path } => {
                let target = target.as_bytes().to_vec();
                // The kernel takes the target in before it looks at the path.
                check_target(&target)?;
                self.create(path, &New { target, ..self.new_object(Kind::Symlink, 0o777) })?;
            }
            OnName::Link { from, to } => {
                let ino = self.at(from)?;
                let (dir, name) = self.parent(to)?;
                self.fs.link(ino, dir, name)?;
            }
            OnName::Rename { from, to, flags } => {
                check_flags(*flags)?;
                let (from, to) = (self.parent(from)?, self.parent(to)?);
                self.fs.rename(from, to, *flags)?;
            }
            OnName::Unlink { path } => {
                let (dir, name) = self.parent(path)?;
                self.fs.unlink(dir, name)?;
            }
            OnName::Rmdir { path } => {
                let (dir, name) = self.parent(path)?;
                self.fs.rmdir(dir, name)?;
            }
            OnName::Readlink { path } => match &self.fs.inode(self.at(path)?)?.body {
                Body::Symlink(target) => return Ok(Outcome::Data(target.clone())),
                Body::File(_) | Body::Directory { .. } | Body::Node(_) => return Err(Errno::Invalid),
            },
            OnName::List { path } => {
                let ino = self.walk(path, true)?.existing()?;
                let listed = self.fs.list(ino, 0)?;
                self.fs.accessed(ino)?;
                return Ok(Outcome::Names(listed.into_iter().map(|(name, _)| name).collect()));
            }
        }
        Ok(Outcome::Done)
    }

    fn create(&mut self, path: &str, new: &New) -> Result<(), Errno> {
        let (dir, name) = self.parent(path)?;
        self.fs.create(dir, name, new).map(drop)
    }
}
