//! Tremove: `unlink` and `rmdir`.

use crate::failure::{Failure, uninterrupted};
use crate::session::Session;
use rustix::fd::AsFd;
use rustix::fs::AtFlags;
use wirefs_op::message::remove::{Rremove, Tremove};
use wirefs_server::{PriorState, Replies};

impl Session {
    pub(crate) fn remove(&self, request: &Tremove, replies: &mut dyn Replies) -> Result<Rremove, Failure> {
        self.check_writable()?;
        let entry = self.entry(&request.place)?;
        replies.touch(&[entry.touched()])?;
        let removed = self.look(&entry);
        let at = removed.as_ref().map(|object| object.id);
        if let Some(object) = removed {
            replies.touch(&[object])?;
        }
        replies
            .record_prior_state(&mut || at.map(|id| PriorState { named: Some(id), ..PriorState::default() }));
        let guard = self.lock_names([entry.dir.id; 2]);
        let before = self.version_of(&entry.dir);
        let held = self.object_before_change(entry.dir.as_fd(), &entry.name);
        let flags = if request.directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        uninterrupted(|| rustix::fs::unlinkat(&entry.dir, &entry.name, flags))?;
        let dir = self.stat_leased(&entry.dir, replies).ok();
        drop(guard);
        self.report_change(&entry.touched(), before, dir.map(|dir| dir.version), replies);
        // Last, since it closes the object, and freeing a large file takes a while.
        self.report_lost_name(held, replies);
        Ok(Rremove { dir })
    }
}
