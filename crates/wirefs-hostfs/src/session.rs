//! One session's view of the export: its root, its open files.

use crate::attributes::Device;
use crate::changes::Changes;
use crate::failure::Failure;
use crate::find::Crew;
use crate::locks::LockTable;
use crate::open_files::{Access, Budget, OpenFile, OpenFiles, RemoveOnClose};
use crate::promise::Promises;
use crate::resolve::Object;
use crate::tree::HostOptions;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::AtFlags;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::{Errno, FileId};
use wirefs_server::{Replies, SessionKey, Touched};

/// What all sessions share.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) root: OwnedFd,
    /// The file system of the root.
    pub(crate) home: Device,
    pub(crate) options: HostOptions,
    pub(crate) acts_for_callers: bool,
    pub(crate) budget: Arc<Budget>,
    pub(crate) crew: Crew,
    pub(crate) locks: LockTable,
    pub(crate) changes: Changes,
    pub(crate) promises: Promises,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) key: SessionKey,
    pub(crate) export: Arc<Export>,
    pub(crate) root: Arc<OwnedFd>,
    pub(crate) root_id: FileId,
    pub(crate) files: OpenFiles,
    /// Set before the locks are released, so that a request still running takes none after that.
    pub(crate) has_ended: AtomicBool,
}

impl Drop for Session {
    /// A request that outlived the session may have opened more.
    fn drop(&mut self) {
        self.close_all();
    }
}

impl Session {
    pub(crate) fn new(key: SessionKey, export: Arc<Export>, root: OwnedFd, root_id: FileId) -> Session {
        let files = OpenFiles::new(Arc::clone(&export.budget));
        Session { key, export, root: Arc::new(root), root_id, files, has_ended: AtomicBool::new(false) }
    }

    /// Closes the session's files and releases its locks.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.close_all();
        self.export.locks.end(self.key);
    }

    /// # Errors
    /// `EROFS`: the export takes no changes.
    pub(crate) fn check_writable(&self) -> Result<(), Errno> {
        if self.export.options.read_only { Err(Errno::ReadOnly) } else { Ok(()) }
    }

    /// Opens `object` so that it may be kept: a kept one that is not good enough stays good for what it was good for.
    pub(crate) fn open_to_keep(&self, object: &Object, wanted: Access) -> Result<Arc<OpenFile>, Errno> {
        if object.fd.is_none() || object.opened(wanted).is_some() {
            return object.open(wanted);
        }
        let both = object.access().union(wanted);
        object.reopen(both).or_else(|_| object.reopen(wanted))
    }

    /// Keeps `file`, which is `object` opened, under a number: the one that it has already where it has one. `NOFD` when
    /// the table is full: the number is a hint, so nothing is wrong then.
    pub(crate) fn keep(&self, object: &Object, file: &Arc<OpenFile>) -> Fd {
        match object.fd {
            Some(fd) => {
                if !object.is_held_by(file) {
                    self.files.replace(fd, file);
                }
                fd
            }
            None => self.files.insert(file).unwrap_or(NOFD),
        }
    }

    /// Says what closing the file of this number is going to change.
    ///
    /// # Errors
    /// Others must hear of it first.
    pub(crate) fn touch_closed(&self, fd: Fd, id: FileId, replies: &mut dyn Replies) -> Result<(), Failure> {
        Ok(replies.touch(&self.files.touched_by_closing(fd, id, self.export.home))?)
    }

    /// Closes the file of this number, if it is this object.
    pub(crate) fn close(&self, fd: Fd, id: FileId, replies: &mut dyn Replies) {
        if let Some(remove) = self.files.close(fd, id) {
            self.remove_touched(&remove, replies);
        }
    }

    /// Removes the name that a closed file left, for a request that has touched it.
    pub(crate) fn remove_touched(&self, remove: &RemoveOnClose, replies: &mut dyn Replies) {
        let turn = self.turn_of_names([remove.dir_id; 2]);
        let before = self.version_of(&remove.dir);
        let held = self.hold(remove.dir.as_fd(), &remove.name);
        if self.remove_closed(remove) {
            let after = self.version_of(&remove.dir);
            drop(turn);
            self.has_lost_name(held, replies);
            self.has_changed(&Touched::name(remove.dir_id, remove.name.to_bytes()), before, after, replies);
        }
    }

    fn close_all(&self) {
        for remove in self.files.close_all() {
            let touched = remove.touched(self.export.home);
            self.remove_closed(&remove);
            // Nobody asked for this who could be made to wait.
            touched.into_iter().for_each(|touched| self.export.promises.tell(touched));
        }
    }

    /// Removes the name that a closed file left, if it still is that file's; whether it did. Whoever closes has no reply that
    /// could carry a failure: the name then stays.
    fn remove_closed(&self, remove: &RemoveOnClose) -> bool {
        let statx = crate::attributes::statx(remove.dir.as_fd(), &remove.name);
        statx.is_ok_and(|statx| crate::attributes::file_id(&statx, self.export.home) == remove.id)
            && rustix::fs::unlinkat(&remove.dir, &remove.name, AtFlags::empty()).is_ok()
    }
}
