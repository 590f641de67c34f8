//! The server's own changes, where the watch tells of them like of all others: the versions that each found and left are told
//! as well, so that a report of it is recognised.

use crate::attributes;
use crate::session::Session;
use rustix::fd::AsFd;
use wirefs_server::{Replies, Touched};

impl Session {
    /// The version of what is about to be changed, where that has to be known.
    ///
    /// # Cost
    /// A system call where each directory is watched by itself, else none.
    pub(crate) fn version_before(&self, object: impl AsFd) -> Option<u64> {
        if !self.export.promises.watches_directories() {
            return None;
        }
        attributes::statx(object.as_fd(), c"").ok().map(|statx| attributes::version(&statx))
    }

    /// Something was changed that had the version `before`, and has `after` now.
    pub(crate) fn has_changed(
        &self,
        touched: &Touched,
        before: Option<u64>,
        after: Option<u64>,
        replies: &mut dyn Replies,
    ) {
        if let Some(after) = after.filter(|_| self.export.promises.watches_directories()) {
            replies.changed(touched, before, after);
        }
    }
}
