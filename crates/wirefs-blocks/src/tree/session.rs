//! Sessions and their open objects.

use super::BlockTree;
use super::commit::Purpose;
use super::locate::{Object, RequestContext};
use crate::affected::{AffectedObject, UnrequestedChange};
use crate::change::Change;
use crate::halt::Halt;
use crate::item::Entry;
use crate::key::Ino;
use crate::volume::Volume;
use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_op::limits::FDS_MAX;
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::{Errno, FileId, Kind};

/// The state of one client.
#[derive(Debug)]
pub(super) struct Session {
    root: FileId,
    files: BTreeMap<Fd, OpenFile>,
    /// All fds below this one are in use.
    lowest_free: u16,
}

/// An open object.
#[derive(Clone, Debug)]
struct OpenFile {
    id: FileId,
    /// The name to remove on close.
    remove: Option<Name>,
}

/// A name in a directory of the live tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) dir: Ino,
    pub(super) name: Vec<u8>,
}

impl Session {
    pub(super) fn new(root: FileId) -> Session {
        Session { root, files: BTreeMap::new(), lowest_free: 0 }
    }

    fn free_fd(&mut self) -> Option<Fd> {
        let free = (self.lowest_free..FDS_MAX as u16).map(Fd).find(|fd| !self.files.contains_key(fd));
        self.lowest_free = free.map_or(FDS_MAX as u16, |fd| fd.0 + 1);
        free
    }

    fn remove(&mut self, fd: Fd) -> Option<OpenFile> {
        let file = self.files.remove(&fd)?;
        self.lowest_free = self.lowest_free.min(fd.0);
        Some(file)
    }
}

impl BlockTree {
    /// Returns the context of a request with this fd.
    pub(super) fn context(&self, session: u64, fd: Fd) -> Result<RequestContext, Errno> {
        let state = self.state();
        let view = state.sessions.get(&session).ok_or(Errno::Protocol)?;
        Ok(RequestContext { root: view.root, open_file: view.files.get(&fd).map(|file| file.id) })
    }

    /// Opens an object that was found in `volume`, under its existing fd or a new one. Returns NOFD if all
    /// fds are in use, `None` if the tree has changed since.
    pub(super) fn open_object(&self, session: u64, object: Object, fd: Fd, volume: &Volume) -> Option<Fd> {
        let mut state = self.state();
        let is_present = object.id.fs == 0;
        if state.volume.id != volume.id && is_present {
            return None;
        }
        let Some(view) = state.sessions.get_mut(&session) else { return Some(NOFD) };
        if view.files.get(&fd).is_some_and(|file| file.id == object.id) {
            return Some(fd);
        }
        if is_present && !self.opens.hold(object.id) {
            return None;
        }
        match view.free_fd() {
            Some(fd) => {
                view.files.insert(fd, OpenFile { id: object.id, remove: None });
                Some(fd)
            }
            None => {
                self.opens.release(object.id);
                Some(NOFD)
            }
        }
    }

    /// Sets remove-on-close for an fd; returns `false` if it is not open.
    pub(super) fn remove_on_close(&self, session: u64, fd: Fd, name: &Name) -> bool {
        let mut state = self.state();
        let file = state.sessions.get_mut(&session).and_then(|view| view.files.get_mut(&fd));
        let Some(file) = file else { return false };
        file.remove = Some(name.clone());
        true
    }

    /// Returns the name that the close of an fd removes.
    pub(super) fn removal_on_close(&self, session: u64, fd: Fd) -> Option<Name> {
        let state = self.state();
        state.sessions.get(&session)?.files.get(&fd)?.remove.clone()
    }

    /// Closes an fd if it refers to this object.
    pub(super) fn close(&self, session: u64, fd: Fd, id: FileId) {
        let closed = {
            let mut state = self.state();
            let view = state.sessions.get_mut(&session);
            view.filter(|view| view.files.get(&fd).is_some_and(|file| file.id == id))
                .and_then(|view| view.remove(fd))
        };
        if let Some(file) = closed {
            self.closed(file);
        }
    }

    /// Ends a session and closes its objects.
    pub fn end(&self, session: u64) {
        let ended = self.state().sessions.remove(&session);
        for file in ended.into_iter().flat_map(|view| view.files.into_values()) {
            self.closed(file);
        }
    }

    fn closed(&self, file: OpenFile) {
        if let Some(name) = &file.remove {
            self.remove_if_still(name, file.id);
        }
        self.release(file.id);
    }

    /// Removes a name if it still refers to this object, and notifies the observer.
    pub(super) fn remove_if_still(&self, name: &Name, id: FileId) {
        let op = |change: &mut Change<'_>| unlink_if_still(change, name, id);
        let mut changed = Vec::new();
        let mut announce = |affected: &[AffectedObject]| {
            changed = affected.to_vec();
            Ok(())
        };
        // On failure, the name stays.
        if self.change(Purpose::Clear, &mut announce, op, |()| ()).is_ok() {
            for object in changed {
                self.notify(UnrequestedChange::Object(object));
            }
        }
    }

    /// Opens a session rooted at `root`; a resumed session keeps its open objects.
    pub(super) fn open_session(&self, session: u64, root: FileId) {
        self.state().sessions.entry(session).or_insert_with(|| Session::new(root));
    }

    /// Protects an object of the live tree from removal during a request; returns `false` if it is gone.
    pub(super) fn hold(&self, id: FileId, volume: &Arc<Volume>) -> bool {
        let state = self.state();
        id.fs != 0 || (state.volume.id == volume.id && self.opens.hold(id))
    }

    /// Ends the protection of [`hold`](Self::hold).
    pub(super) fn release(&self, id: FileId) {
        if id.fs == 0 {
            self.opens.release(id);
        }
        if self.opens.backlog() > 0 {
            self.collect(1);
        }
    }
}

/// Removes a name if it still refers to this object and that is not a directory.
pub(super) fn unlink_if_still(change: &mut Change<'_>, name: &Name, id: FileId) -> Result<(), Halt> {
    let is_still = |entry: &Entry| {
        (entry.ino.0, entry.generation) == (id.ino, id.generation) && entry.kind != Kind::Directory
    };
    match change.lookup(name.dir, &name.name) {
        Ok(entry) if is_still(&entry) => change.unlink(name.dir, &name.name),
        Ok(_) | Err(Halt::Failed(_)) => Ok(()),
        Err(halt) => Err(halt),
    }
}
