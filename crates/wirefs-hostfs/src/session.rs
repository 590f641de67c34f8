//! One session of the export: its root and its open files.

use crate::attributes::Home;
use crate::changes::Changes;
use crate::clients::Clients;
use crate::detection::ChangeDetection;
use crate::failure::Failure;
use crate::find::HelperLimit;
use crate::locks::LockTable;
use crate::open_files::{Access, ClientBudget, OpenFile, OpenFiles, RemoveOnClose};
use crate::resolve::Object;
use crate::tree::HostOptions;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::AtFlags;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::{Errno, FileId};
use wirefs_server::{Replies, SessionKey, Touched};

/// The state that all sessions share.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) root: OwnedFd,
    /// The file system of the root.
    pub(crate) home: Home,
    pub(crate) options: HostOptions,
    pub(crate) acts_for_callers: bool,
    pub(crate) clients: Clients,
    pub(crate) helper_limit: HelperLimit,
    pub(crate) locks: LockTable,
    pub(crate) changes: Changes,
    pub(crate) detection: ChangeDetection,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) key: SessionKey,
    pub(crate) export: Arc<Export>,
    pub(crate) root: Arc<OwnedFd>,
    pub(crate) root_id: FileId,
    pub(crate) files: OpenFiles,
    /// Set before the locks are released, so that a running request takes none afterwards.
    pub(crate) has_ended: AtomicBool,
}

impl Drop for Session {
    /// A request that outlived the session may have opened more files.
    fn drop(&mut self) {
        self.close_all();
    }
}

impl Session {
    pub(crate) fn new(
        key: SessionKey,
        export: Arc<Export>,
        budget: Arc<ClientBudget>,
        (root, root_id): (OwnedFd, FileId),
    ) -> Session {
        let files = OpenFiles::new(budget);
        Session { key, export, root: Arc::new(root), root_id, files, has_ended: AtomicBool::new(false) }
    }

    /// Closes the session's files and releases its locks.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.close_all();
        self.export.locks.end(self.key);
    }

    /// # Errors
    /// `EROFS`: the export is read-only.
    pub(crate) fn check_writable(&self) -> Result<(), Errno> {
        if self.export.options.read_only { Err(Errno::ReadOnly) } else { Ok(()) }
    }

    /// Opens `object` for keeping. If a kept descriptor lacks some access, the new one has its access too, if
    /// possible.
    pub(crate) fn open_to_keep(&self, object: &Object, wanted: Access) -> Result<Arc<OpenFile>, Errno> {
        if object.fd.is_none() || object.opened(wanted).is_some() {
            return object.open(wanted);
        }
        let both = object.access().union(wanted);
        object.reopen(both).or_else(|_| object.reopen(wanted))
    }

    /// Keeps `file`, an open descriptor of `object`, under its present fd or a new one. Returns `NOFD` if the table
    /// is full: an fd is only a hint.
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

    /// States the changes by closing this file.
    ///
    /// # Errors
    /// Other clients must answer a recall first.
    pub(crate) fn touch_closed(&self, fd: Fd, id: FileId, replies: &mut dyn Replies) -> Result<(), Failure> {
        Ok(replies.touch(&self.files.touched_by_closing(fd, id, self.export.home))?)
    }

    /// Closes the file with this fd, if it is this object.
    pub(crate) fn close(&self, fd: Fd, id: FileId, replies: &mut dyn Replies) {
        if let Some(remove) = self.files.close(fd, id) {
            self.remove_touched(&remove, replies);
        }
    }

    /// Removes the name of a closed file, after the request has touched it.
    pub(crate) fn remove_touched(&self, remove: &RemoveOnClose, replies: &mut dyn Replies) {
        let guard = self.lock_names([remove.dir_id; 2]);
        let before = self.version_of(&remove.dir);
        let held = self.object_before_change(remove.dir.as_fd(), &remove.name);
        if self.remove_closed(remove) {
            let after = self.version_of(&remove.dir);
            drop(guard);
            self.report_lost_name(held, replies);
            self.report_change(&Touched::name(remove.dir_id, remove.name.to_bytes()), before, after, replies);
        }
    }

    fn close_all(&self) {
        for remove in self.files.close_all() {
            let touched = remove.touched(self.export.home);
            self.remove_closed(&remove);
            // No request can be parked here, so leases are recalled after the change.
            touched.into_iter().for_each(|touched| self.export.detection.report(touched));
        }
    }

    /// Removes the name of a closed file, if it still refers to the file. Returns whether it did. A failure leaves
    /// the name, since a close cannot report it.
    fn remove_closed(&self, remove: &RemoveOnClose) -> bool {
        let statx = crate::attributes::statx(remove.dir.as_fd(), &remove.name);
        statx.is_ok_and(|statx| crate::attributes::file_id(&statx, self.export.home) == remove.id)
            && rustix::fs::unlinkat(&remove.dir, &remove.name, AtFlags::empty()).is_ok()
    }
}
