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
        // What is to be stable is done and held; the next change need not wait for the disk.
        replies.release_slot();
        match request.scope {
            CommitScope::Data if can_open => uninterrupted(|| rustix::fs::fdatasync(&*file))?,
            CommitScope::File if can_open => uninterrupted(|| rustix::fs::fsync(&*file))?,
            // What cannot be opened has nothing of its own but its inode, which goes with the file system.
            CommitScope::Data | CommitScope::File | CommitScope::Filesystem => {
                uninterrupted(|| rustix::fs::syncfs(&*file))?;
            }
        }
        Ok(Rcommit { boot: self.export.options.boot })
    }

    /// The whole file system that the session's root is on, to stable storage.
    pub(crate) fn sync_all(&self) -> Result<(), Failure> {
        let root = openable(&self.directory(&TreePath::root(), None)?)?;
        Ok(uninterrupted(|| rustix::fs::syncfs(&*root))?)
    }
}

/// Contents and attributes to stable storage.
pub(crate) fn sync(file: impl AsFd) -> Result<(), Failure> {
    Ok(uninterrupted(|| rustix::fs::fsync(file.as_fd()))?)
}

/// Any descriptor that can be synced: the kept one, since it hears of the failures of its own writes, else one for
/// reading, else one for writing.
fn openable(object: &Object) -> Result<Arc<OpenFile>, Errno> {
    match object.opened(Access::default()) {
        Some(file) => Ok(Arc::clone(file)),
        None => object.open(Access::READ).or_else(|_| object.open(Access::WRITE)),
    }
}
