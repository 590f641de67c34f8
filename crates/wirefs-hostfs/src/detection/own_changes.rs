//! The server's own changes, if the watcher reports them too. Their versions before and after are stated, so that
//! the reports are recognized.

use crate::attributes;
use crate::resolve::Object;
use crate::session::Session;
use rustix::fd::{AsFd, BorrowedFd};
use std::ffi::CStr;
use std::sync::MutexGuard;
use wirefs_op::FileId;
use wirefs_server::{Replies, Touched};

impl Session {
    /// The version of an object right before or after a change, if it is needed.
    ///
    /// # Cost
    /// One system call if own changes are reported, else none.
    pub(crate) fn version_of(&self, object: impl AsFd) -> Option<u64> {
        if !self.export.detection.detects_own_changes() {
            return None;
        }
        attributes::statx(object.as_fd(), c"").ok().map(|statx| attributes::version(&statx, self.export.home))
    }

    /// Locks the names of these directories, if their versions are needed. Otherwise another request could change a
    /// directory between the reads of its versions, which would look like an external change.
    pub(crate) fn lock_names(&self, dirs: [FileId; 2]) -> [Option<MutexGuard<'_, ()>>; 2] {
        match self.export.detection.detects_own_changes() {
            true => self.export.changes.lock_names(dirs),
            false => [None, None],
        }
    }

    /// The object whose name is about to be removed or replaced, with its version, if it is needed.
    ///
    /// # Cost
    /// Three system calls if own changes are reported, else none.
    pub(crate) fn object_before_change(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
    ) -> Option<(Object, Option<u64>)> {
        if !self.export.detection.detects_own_changes() {
            return None;
        }
        let object = self.child_of(dir, name).ok()?;
        let before = self.version_of(&object);
        Some((object, before))
    }

    /// Reports that this object lost a name.
    pub(crate) fn report_lost_name(&self, held: Option<(Object, Option<u64>)>, replies: &mut dyn Replies) {
        let Some((object, before)) = held else { return };
        let Ok(statx) = attributes::statx(object.as_fd(), c"") else { return };
        // In the same way as the watcher reports it.
        let after = (statx.stx_nlink > 0).then(|| attributes::version(&statx, self.export.home));
        replies.changed(&Touched::object(object.id), before, after);
    }

    /// Reports a change from version `before` to version `after`.
    pub(crate) fn report_change(
        &self,
        touched: &Touched,
        before: Option<u64>,
        after: Option<u64>,
        replies: &mut dyn Replies,
    ) {
        if let Some(after) = after.filter(|_| self.export.detection.detects_own_changes()) {
            replies.changed(touched, before, Some(after));
        }
    }
}
