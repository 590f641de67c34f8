//! Tcommit: waits for stable storage.

use crate::failure::{Failure, uninterrupted};
use crate::open_files::{Access, OpenFile};
use crate::resolve::Object;
use crate::session::Session;
use rustix::fd::AsFd;
use std::sync::Arc;
use wirefs_op::message::commit::{CommitScope, Rcommit, Tcommit};
use wirefs_op::{Errno, Kind, TreePath};
use wirefs_server::Replies;

impl Session {
    pub(crate) fn commit(&self, request: &Tcommit, replies: &mut dyn Replies) -> Result<Rcommit, Failure> {
        let object = self.locate(&request.target)?;
        let can_open = matches!(object.kind, Kind::File | Kind::Directory);
        let file =
            if can_open { openable(&object)? } else { openable(&self.directory(&TreePath::root(), None)?)? };
        // The changes are done and the file is open; the next change need not wait for the disk.
        replies.release_slot();
        match request.scope {
            CommitScope::Data if can_open => uninterrupted(|| rustix::fs::fdatasync(&*file))?,
            CommitScope::File if can_open => uninterrupted(|| rustix::fs::fsync(&*file))?,
            // An object that cannot be opened has only an inode, which is synced with the file system.
            CommitScope::Data | CommitScope::File | CommitScope::Filesystem => {
                uninterrupted(|| rustix::fs::syncfs(&*file))?;
            }
        }
        Ok(Rcommit { boot: self.export.options.boot })
    }

    /// Syncs the file system of the session's root.
    pub(crate) fn sync_all(&self) -> Result<(), Failure> {
        let root = openable(&self.directory(&TreePath::root(), None)?)?;
        Ok(uninterrupted(|| rustix::fs::syncfs(&*root))?)
    }
}

/// Syncs contents and attributes.
pub(crate) fn sync(file: impl AsFd) -> Result<(), Failure> {
    Ok(uninterrupted(|| rustix::fs::fsync(file.as_fd()))?)
}

/// A descriptor that can be synced. The kept one is preferred, since it reports failures of its own writes.
fn openable(object: &Object) -> Result<Arc<OpenFile>, Errno> {
    match object.opened(Access::default()) {
        Some(file) => Ok(Arc::clone(file)),
        None => object.open(Access::READ).or_else(|_| object.open(Access::WRITE)),
    }
}
