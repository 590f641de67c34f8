//! Tremove, Trename, Tlink.

use wirefs_op::message::link::{Rlink, Tlink};
use wirefs_op::message::remove::{Rremove, Tremove};
use wirefs_op::message::rename::{NOREPLACE, Rrename, Trename};
use wirefs_op::{Errno, Kind, Stat};

use super::locate::Named;
use super::{At, Failure};
use crate::message::{Request, Status};
use crate::wire::{Fault, Sent};

impl At<'_> {
    pub(super) fn remove(&self, request: &Tremove) -> Result<Rremove, Failure> {
        let named = self.named(&request.place)?;
        let path = &named.path;
        let removal = match request.directory {
            true => Request::Rmdir { path },
            false => Request::Remove { path },
        };
        let removed = self.remote.send(&removal)?;
        let (left, dir) = (self.remote.lstat(path)?, self.remote.lstat(&named.parent_path)?);
        match (removed.done(), left.attributes()) {
            (Ok(()), _) => self.tree.ids.removed(named.parent, named.name),
            (Err(Fault::Lost), _) | (_, Err(Fault::Lost)) => return Err(Failure::Lost),
            (Err(Fault::Refused(Status::Denied)), _) => return Err(Errno::AccessDenied.into()),
            (Err(_), Ok(left)) => {
                return Err(match (left.kind() == Kind::Directory, request.directory) {
                    (true, false) => Errno::IsDirectory,
                    (false, true) => Errno::NotDirectory,
                    (true, true) => Errno::NotEmpty,
                    (false, false) => Errno::Io,
                }
                .into());
            }
            (Err(fault), Err(_)) => return Err(fault.into()),
        }
        Ok(Rremove { dir: Some(dir.attributes()?.stat(named.parent)) })
    }

    pub(super) fn rename(&self, request: &Trename) -> Result<Rrename, Failure> {
        if request.flags & !NOREPLACE != 0 {
            return Err(Errno::Invalid.into());
        }
        let (from, to) = (self.named(&request.from)?, self.named(&request.to)?);
        let replaces = request.flags & NOREPLACE == 0;
        let paths = (&from.path[..], &to.path[..]);
        let rename = match replaces && self.remote.extensions.renames_over {
            true => Request::PosixRename { from: paths.0, to: paths.1 },
            false => Request::Rename { from: paths.0, to: paths.1 },
        };
        let renamed = self.remote.send(&rename)?;
        let (old, new) = (self.remote.lstat(paths.0)?, self.remote.lstat(paths.1)?);
        let dirs = (self.remote.lstat(&from.parent_path)?, self.remote.lstat(&to.parent_path)?);
        match (renamed.done(), new.attributes()) {
            (Ok(()), Ok(_)) => {}
            (Err(Fault::Refused(Status::Failure | Status::NoSuchFile)), new) => {
                self.after_refusal(&from, &to, old, new.ok().map(|new| new.kind()), replaces)?;
            }
            (Err(fault), _) | (_, Err(fault)) => return Err(fault.into()),
        }
        self.tree.ids.moved((from.parent, from.name), (to.parent, to.name));
        let ino = self.tree.ids.child(to.parent, to.name);
        let moved = self.remote.lstat(paths.1)?.attributes()?.stat(ino);
        Ok(Rrename {
            stat: Some(moved),
            from_dir: Some(dirs.0.attributes()?.stat(from.parent)),
            to_dir: Some(dirs.1.attributes()?.stat(to.parent)),
        })
    }

    /// Finds the reason of a refused rename, and renames in two steps where the server cannot replace in one.
    fn after_refusal(
        &self,
        from: &Named<'_>,
        to: &Named<'_>,
        old: Sent,
        new: Option<Kind>,
        replaces: bool,
    ) -> Result<(), Failure> {
        let old = old.attributes()?.kind();
        match (old == Kind::Directory, new) {
            (_, Some(_)) if !replaces => return Err(Errno::Exists.into()),
            (true, Some(Kind::Directory)) if self.remote.extensions.renames_over => {
                return Err(Errno::NotEmpty.into());
            }
            (true, Some(Kind::Directory)) => {
                let removed = self.remote.send(&Request::Rmdir { path: &to.path })?;
                removed.done().map_err(|fault| match Failure::from(fault) {
                    Failure::Errno(_) => Failure::Errno(Errno::NotEmpty),
                    lost => lost,
                })?;
            }
            (true, Some(_)) => return Err(Errno::NotDirectory.into()),
            (false, Some(Kind::Directory)) => return Err(Errno::IsDirectory.into()),
            (false, Some(_)) if !self.remote.extensions.renames_over => {
                self.remote.send(&Request::Remove { path: &to.path })?.done()?;
            }
            // Programs then copy.
            (_, _) => return Err(Errno::CrossDevice.into()),
        }
        Ok(self.remote.send(&Request::Rename { from: &from.path, to: &to.path })?.done()?)
    }

    pub(super) fn link(&self, request: &Tlink) -> Result<Rlink, Failure> {
        if !self.remote.extensions.links {
            return Err(Errno::NotPermitted.into());
        }
        let (ino, to) = (self.ino_of(&request.target)?, self.named(&request.to)?);
        let from = self.full(&request.target.path);
        let before = self.remote.lstat(&to.path)?;
        let linked = self.remote.send(&Request::Hardlink { from: &from, to: &to.path })?;
        let (new, dir) = (self.remote.lstat(&to.path)?, self.remote.lstat(&to.parent_path)?);
        match (linked.done(), before.attributes()) {
            (Ok(()), _) => {}
            (Err(Fault::Refused(_)), Ok(_)) => return Err(Errno::Exists.into()),
            (Err(fault), _) => return Err(fault.into()),
        }
        self.tree.ids.named(to.parent, to.name, ino);
        let stat: Stat = new.attributes()?.stat(ino);
        Ok(Rlink { stat: Some(stat), dir: Some(dir.attributes()?.stat(to.parent)) })
    }
}
