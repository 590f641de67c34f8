//! System calls on names.

use crate::fs::{InodeBody, NewInode, check_flags, check_target};
use crate::operation::NameCall;
use crate::posix::OperationOutcome;
use crate::posix::model::ModelExecutor;
use wirefs_op::{Errno, Kind};

impl ModelExecutor {
    pub(super) fn name_call(&mut self, name_call: &NameCall) -> Result<OperationOutcome, Errno> {
        match name_call {
            NameCall::Mkdir { path, mode } => self.create(path, &self.new_object(Kind::Directory, *mode))?,
            NameCall::Mkfifo { path, mode } => self.create(path, &self.new_object(Kind::Fifo, *mode))?,
            NameCall::Symlink { target, path } => {
                let target = target.as_bytes().to_vec();
                // The kernel copies the target before it resolves the path.
                check_target(&target)?;
                self.create(path, &NewInode { target, ..self.new_object(Kind::Symlink, 0o777) })?;
            }
            NameCall::Link { from, to } => {
                let ino = self.at(from)?;
                let (dir, name) = self.parent(to)?;
                self.fs.link(ino, dir, name)?;
            }
            NameCall::Rename { from, to, flags } => {
                check_flags(*flags)?;
                let (from, to) = (self.parent(from)?, self.parent(to)?);
                self.fs.rename(from, to, *flags)?;
            }
            NameCall::Unlink { path } => {
                let (dir, name) = self.parent(path)?;
                self.fs.unlink(dir, name)?;
            }
            NameCall::Rmdir { path } => {
                let (dir, name) = self.parent(path)?;
                self.fs.rmdir(dir, name)?;
            }
            NameCall::Readlink { path } => match &self.fs.inode(self.at(path)?)?.body {
                InodeBody::Symlink(target) => return Ok(OperationOutcome::Data(target.clone())),
                InodeBody::File(_) | InodeBody::Directory { .. } | InodeBody::Node(_) => {
                    return Err(Errno::Invalid);
                }
            },
            NameCall::List { path } => {
                let ino = self.resolve(path, true)?.existing()?;
                let listed = self.fs.list(ino, 0)?;
                self.fs.accessed(ino)?;
                return Ok(OperationOutcome::Names(listed.into_iter().map(|(name, _)| name).collect()));
            }
        }
        Ok(OperationOutcome::Done)
    }

    fn create(&mut self, path: &str, new: &NewInode) -> Result<(), Errno> {
        let (dir, name) = self.parent(path)?;
        self.fs.create(dir, name, new).map(drop)
    }
}
