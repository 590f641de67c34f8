//! Trename: `renameat2`.

use crate::attributes::{is_without_xattrs, stat, statx};
use crate::failure::{Failure, uninterrupted};
use crate::session::Session;
use rustix::fd::AsFd;
use rustix::fs::RenameFlags;
use wirefs_op::Errno;
use wirefs_op::message::rename::{EXCHANGE, NOREPLACE, Rrename, Trename};

impl Session {
    pub(crate) fn rename(&self, request: &Trename) -> Result<Rrename, Failure> {
        self.check_writable()?;
        let flags = match request.flags {
            0 => RenameFlags::empty(),
            NOREPLACE => RenameFlags::NOREPLACE,
            EXCHANGE => RenameFlags::EXCHANGE,
            _ => return Err(Errno::Invalid.into()),
        };
        let from = self.entry(&request.from)?;
        let to = self.entry(&request.to)?;
        uninterrupted(|| rustix::fs::renameat_with(&from.dir, &from.name, &to.dir, &to.name, flags))?;
        let dir = to.dir.as_fd();
        let moved = statx(dir, &to.name)
            .map(|statx| stat(&statx, self.export.home, is_without_xattrs(dir, &to.name)));
        Ok(Rrename { stat: moved.ok(), from_dir: self.stat(&from.dir).ok(), to_dir: self.stat(&to.dir).ok() })
    }
}
