//! Trename: `renameat2`.

use crate::attributes::stat_name;
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
        let moved = stat_name(to.dir.as_fd(), &to.name, self.export.home);
        Ok(Rrename { stat: moved.ok(), from_dir: self.stat(&from.dir).ok(), to_dir: self.stat(&to.dir).ok() })
    }
}
