//! Trename: `renameat2`.

use crate::failure::{Failure, uninterrupted};
use crate::session::Session;
use rustix::fd::AsFd;
use rustix::fs::RenameFlags;
use wirefs_op::Errno;
use wirefs_op::message::rename::{EXCHANGE, NOREPLACE, Rrename, Trename};
use wirefs_server::{PriorState, Replies, Touched};

impl Session {
    pub(crate) fn rename(&self, request: &Trename, replies: &mut dyn Replies) -> Result<Rrename, Failure> {
        self.check_writable()?;
        let flags = match request.flags {
            0 => RenameFlags::empty(),
            NOREPLACE => RenameFlags::NOREPLACE,
            EXCHANGE => RenameFlags::EXCHANGE,
            _ => return Err(Errno::Invalid.into()),
        };
        let from = self.entry(&request.from)?;
        let to = self.entry(&request.to)?;
        replies.touch(&[from.touched(), to.touched()])?;
        // The moved object, and the replaced or exchanged one.
        let objects = [self.look(&from), self.look(&to)];
        let [of, at] = [&objects[0], &objects[1]].map(|object| object.as_ref().map(|object| object.id));
        replies.touch(&objects.into_iter().flatten().collect::<Vec<_>>())?;
        replies.record_prior_state(&mut || of.map(|id| PriorState { named: at, object: Some(id), size: 0 }));
        let guard = self.lock_names([from.dir.id, to.dir.id]);
        let before = [&from, &to].map(|entry| self.version_of(&entry.dir));
        // After an exchange, the version of the other object may be that of a later change by a program, so it is
        // not reported as the own change.
        let replaced = if request.flags == EXCHANGE {
            None
        } else {
            self.object_before_change(to.dir.as_fd(), &to.name)
        };
        uninterrupted(|| rustix::fs::renameat_with(&from.dir, &from.name, &to.dir, &to.name, flags))?;
        let dirs = [&from, &to].map(|entry| self.stat_leased(&entry.dir, replies).ok());
        drop(guard);
        if request.flags == NOREPLACE {
            self.settle_lock_name(&to.name);
        }
        self.report_lost_name(replaced, replies);
        // By now another session or program may have given the name to something else.
        let stat = self.stat_child_leased(&to, replies).ok().filter(|stat| Some(stat.id) == of);
        if let Some(moved) = stat {
            self.report_change(&Touched::object(moved.id), None, Some(moved.version), replies);
        }
        for ((entry, dir), before) in [&from, &to].into_iter().zip(&dirs).zip(before) {
            self.report_change(&entry.touched(), before, dir.map(|dir| dir.version), replies);
        }
        let [from_dir, to_dir] = dirs;
        Ok(Rrename { stat, from_dir, to_dir })
    }
}
