//! Tlink: `linkat`, also of an open file without a name.

use crate::attributes::proc_path;
use crate::failure::{Failure, uninterrupted};
use crate::session::Session;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD};
use wirefs_op::message::link::{Rlink, Tlink};

impl Session {
    pub(crate) fn link(&self, request: &Tlink) -> Result<Rlink, Failure> {
        self.check_writable()?;
        let object = self.locate(&request.target)?;
        let to = self.entry(&request.to)?;
        // Following the entry in /proc leads to the very object that is held, and no further if that is a link.
        let path = proc_path(object.as_fd());
        uninterrupted(|| rustix::fs::linkat(CWD, &path, &to.dir, &to.name, AtFlags::SYMLINK_FOLLOW))?;
        Ok(Rlink { stat: self.stat(&object).ok(), dir: self.stat(&to.dir).ok() })
    }
}
