//! Directories on the server's disk. A program that creates a file, syncs it and then syncs its directory, as databases
//! do, waits only once.
//!
//! When a file is synced in a directory that programs sync, the directory is synced along with it. A following `fsync`
//! of the directory joins that sync, unless a program or client has created, moved or removed a name in between.

use crate::view::{View, rollback};
use wirefs_cache::TreeNodeId;
use wirefs_op::message::put::PutMode;
use wirefs_op::{Change, Request, TreePath};

/// Returns the rollback journal of a change that only creates, removes or changes the attributes of one.
fn journal_of(request: &Request) -> Option<&TreePath> {
    let path = match request {
        Request::Put(put) if !put.mode.has(PutMode::REMOVE) && !put.mode.has(PutMode::NAMELESS) => {
            &put.target.path
        }
        Request::Remove(remove) => &remove.place.path,
        _ => return None,
    };
    path.names().next_back().is_some_and(rollback::is_journal).then_some(path)
}

/// Returns whether a request may change the names in a directory, or a directory's attributes.
fn may_concern_directory(request: &Request) -> bool {
    match request.change() {
        Some(Change::Put(put)) => {
            [PutMode::CREATE, PutMode::STAT, PutMode::REMOVE].into_iter().any(|mode| put.mode.has(mode))
        }
        Some(Change::Remove(_) | Change::Rename(_) | Change::Link(_) | Change::Xattr(_)) => true,
        Some(Change::Lock(_) | Change::Allocate(_) | Change::Copy(_)) | None => false,
    }
}

impl View {
    /// A request is about to be sent.
    pub(crate) fn watch_syncs(&mut self, request: &Request) {
        self.watch_rollback(request);
        if may_concern_directory(request) {
            match journal_of(request) {
                Some(journal) => self.exclusive.synced.journal_changed(journal),
                None => self.exclusive.synced.forget(),
            }
        }
    }

    /// Returns the rollback journals in a directory that were created, changed or removed since its last sync.
    pub(crate) fn journals_since(&self, dir: TreeNodeId) -> Vec<TreePath> {
        let path = self.names.path(dir);
        path.map(|path| self.exclusive.synced.journals_of(dir, &path)).unwrap_or_default()
    }
}
