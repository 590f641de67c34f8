//! Tlink: `linkat`, also of an open file without a name.

use crate::attributes::proc_path;
use crate::failure::{Failure, uninterrupted};
use crate::session::Session;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD};
use wirefs_op::message::link::{Rlink, Tlink};
use wirefs_server::{PriorState, Replies, Touched};

impl Session {
    pub(crate) fn link(&self, request: &Tlink, replies: &mut dyn Replies) -> Result<Rlink, Failure> {
        self.check_writable()?;
        let object = self.locate(&request.target)?;
        let to = self.entry(&request.to)?;
        let touched = [to.touched(), Touched::object(object.id)];
        replies.touch(&touched)?;
        replies.record_prior_state(&mut || {
            Some(PriorState { object: Some(object.id), ..PriorState::default() })
        });
        let guard = self.lock_names([to.dir.id; 2]);
        let before = [self.version_of(&to.dir), self.version_of(&object)];
        // Following the entry in /proc leads to this object, and no further if it is a symlink.
        let path = proc_path(object.as_fd());
        uninterrupted(|| rustix::fs::linkat(CWD, &path, &to.dir, &to.name, AtFlags::SYMLINK_FOLLOW))?;
        let stat = self.stat_leased(&object, replies).ok();
        let dir = self.stat_leased(&to.dir, replies).ok();
        drop(guard);
        self.settle_lock_name(&to.name);
        for ((touched, before), after) in touched.iter().zip(before).zip([dir, stat]) {
            self.report_change(touched, before, after.map(|stat| stat.version), replies);
        }
        Ok(Rlink { stat, dir })
    }
}
