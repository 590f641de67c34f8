//! The server's own changes, where the watch tells of them like of all others: the versions that each found and left are told
//! as well, so that a report of it is recognised.

use crate::attributes;
use crate::resolve::Object;
use crate::session::Session;
use rustix::fd::{AsFd, BorrowedFd};
use std::ffi::CStr;
use std::sync::MutexGuard;
use wirefs_op::FileId;
use wirefs_server::{Replies, Touched};

impl Session {
    /// The version of what is about to be changed, or just was, where that has to be known.
    ///
    /// # Cost
    /// A system call where own changes are told of as well, else none.
    pub(crate) fn version_of(&self, object: impl AsFd) -> Option<u64> {
        if !self.export.promises.notices_own() {
            return None;
        }
        attributes::statx(object.as_fd(), c"").ok().map(|statx| attributes::version(&statx))
    }

    /// A turn to change names of these directories, where the versions before and after that have to be known: what another
    /// request of this server changed in between would look like somebody else's change.
    pub(crate) fn turn_of_names(&self, dirs: [FileId; 2]) -> [Option<MutexGuard<'_, ()>>; 2] {
        match self.export.promises.notices_own() {
            true => self.export.changes.turn_of_names(dirs),
            false => [None, None],
        }
    }

    /// What this name means, which is about to mean something else or nothing: to be looked at again after that, where it has to
    /// be known. The version is the one before.
    ///
    /// # Cost
    /// Three system calls where own changes are told of as well, else none.
    pub(crate) fn hold(&self, dir: BorrowedFd<'_>, name: &CStr) -> Option<(Object, Option<u64>)> {
        if !self.export.promises.notices_own() {
            return None;
        }
        let object = self.child_of(dir, name).ok()?;
        let before = self.version_of(&object);
        Some((object, before))
    }

    /// This object has lost a name, or has another one now.
    pub(crate) fn has_lost_name(&self, held: Option<(Object, Option<u64>)>, replies: &mut dyn Replies) {
        let Some((object, before)) = held else { return };
        let Ok(statx) = attributes::statx(object.as_fd(), c"") else { return };
        // As the watch tells of it.
        let after = (statx.stx_nlink > 0).then(|| attributes::version(&statx));
        replies.changed(&Touched::object(object.id), before, after);
    }

    /// Something was changed that had the version `before`, and has `after` now.
    pub(crate) fn has_changed(
        &self,
        touched: &Touched,
        before: Option<u64>,
        after: Option<u64>,
        replies: &mut dyn Replies,
    ) {
        if let Some(after) = after.filter(|_| self.export.promises.notices_own()) {
            replies.changed(touched, before, Some(after));
        }
    }
}
