//! Tremove, Trename, Tlink.

use crate::fs::check_flags;
use crate::tree::ModelState;
use wirefs_op::Errno;
use wirefs_op::message::link::{Rlink, Tlink};
use wirefs_op::message::remove::{Rremove, Tremove};
use wirefs_op::message::rename::{Rrename, Trename};
use wirefs_server::SessionKey;

impl ModelState {
    pub(super) fn remove(&mut self, session: SessionKey, request: &Tremove) -> Result<Rremove, Errno> {
        let (dir, name) = self.entry(session, &request.place)?;
        if request.directory {
            self.fs.rmdir(dir, name)?
        } else {
            self.fs.unlink(dir, name)?
        }
        Ok(Rremove { dir: self.stat(dir) })
    }

    pub(super) fn rename(&mut self, session: SessionKey, request: &Trename) -> Result<Rrename, Errno> {
        check_flags(request.flags)?;
        let (from, to) = (self.entry(session, &request.from)?, self.entry(session, &request.to)?);
        self.fs.rename(from, to, request.flags)?;
        let moved = self.fs.lookup(to.0, to.1)?;
        Ok(Rrename { stat: self.stat(moved), from_dir: self.stat(from.0), to_dir: self.stat(to.0) })
    }

    pub(super) fn link(&mut self, session: SessionKey, request: &Tlink) -> Result<Rlink, Errno> {
        let object = self.locate(session, &request.target)?;
        let (dir, name) = self.entry(session, &request.to)?;
        self.fs.link(object.ino, dir, name)?;
        Ok(Rlink { stat: self.stat(object.ino), dir: self.stat(dir) })
    }
}
