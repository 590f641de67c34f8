//! Tremove: `unlink` and `rmdir`.

use crate::failure::{Failure, uninterrupted};
use crate::session::Session;
use rustix::fs::AtFlags;
use wirefs_op::message::remove::{Rremove, Tremove};

impl Session {
    pub(crate) fn remove(&self, request: &Tremove) -> Result<Rremove, Failure> {
        self.check_writable()?;
        let entry = self.entry(&request.place)?;
        let flags = if request.directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        uninterrupted(|| rustix::fs::unlinkat(&entry.dir, &entry.name, flags))?;
        Ok(Rremove { dir: self.stat(&entry.dir).ok() })
    }
}
