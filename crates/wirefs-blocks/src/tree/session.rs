//! What a session has open.

use super::BlockTree;
use super::commit::Purpose;
use super::locate::{Object, Seat};
use crate::change::Change;
use crate::halt::Halt;
use crate::item::Entry;
use crate::key::Ino;
use crate::touch::{Touch, Unasked};
use crate::volume::Volume;
use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_op::limits::FDS_MAX;
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::{Errno, FileId, Kind};

/// One client's view.
#[derive(Debug)]
pub(super) struct Session {
    root: FileId,
    files: BTreeMap<Fd, Kept>,
    /// All fds below this one are taken.
    lowest_free: u16,
}

/// An object that is kept open.
#[derive(Clone, Debug)]
struct Kept {
    id: FileId,
    /// The name to remove when it is closed.
    remove: Option<Name>,
}

/// A name in a directory of the present tree.
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

    fn remove(&mut self, fd: Fd) -> Option<Kept> {
        let kept = self.files.remove(&fd)?;
        self.lowest_free = self.lowest_free.min(fd.0);
        Some(kept)
    }
}

impl BlockTree {
    /// What a session brings to a request with this fd.
    pub(super) fn seat(&self, session: u64, fd: Fd) -> Result<Seat, Errno> {
        let state = self.state();
        let view = state.sessions.get(&session).ok_or(Errno::Protocol)?;
        Ok(Seat { root: view.root, kept: view.files.get(&fd).map(|kept| kept.id) })
    }

    /// Keeps an object open that was found in `volume`: under the fd that it has already, or a new one. NOFD when there
    /// are too many. `None` when the tree has changed since.
    pub(super) fn keep(&self, session: u64, object: Object, fd: Fd, volume: &Volume) -> Option<Fd> {
        let mut state = self.state();
        let is_present = object.id.fs == 0;
        if state.volume.id != volume.id && is_present {
            return None;
        }
        let Some(view) = state.sessions.get_mut(&session) else { return Some(NOFD) };
        if view.files.get(&fd).is_some_and(|kept| kept.id == object.id) {
            return Some(fd);
        }
        if is_present && !self.opens.hold(object.id) {
            return None;
        }
        match view.free_fd() {
            Some(fd) => {
                view.files.insert(fd, Kept { id: object.id, remove: None });
                Some(fd)
            }
            None => {
                self.opens.release(object.id);
                Some(NOFD)
            }
        }
    }

    /// Notes a name that goes when `fd` is closed; false when nothing is open there.
    pub(super) fn remove_on_close(&self, session: u64, fd: Fd, name: &Name) -> bool {
        let mut state = self.state();
        let kept = state.sessions.get_mut(&session).and_then(|view| view.files.get_mut(&fd));
        let Some(kept) = kept else { return false };
        kept.remove = Some(name.clone());
        true
    }

    /// The name that goes when `fd` is closed.
    pub(super) fn removal_on_close(&self, session: u64, fd: Fd) -> Option<Name> {
        let state = self.state();
        state.sessions.get(&session)?.files.get(&fd)?.remove.clone()
    }

    /// Closes what is open under `fd`, if it is that object.
    pub(super) fn close(&self, session: u64, fd: Fd, id: FileId) {
        let closed = {
            let mut state = self.state();
            let view = state.sessions.get_mut(&session);
            view.filter(|view| view.files.get(&fd).is_some_and(|kept| kept.id == id))
                .and_then(|view| view.remove(fd))
        };
        if let Some(kept) = closed {
            self.closed(kept);
        }
    }

    /// The session is over: what it had open is closed.
    pub fn end(&self, session: u64) {
        let ended = self.state().sessions.remove(&session);
        for kept in ended.into_iter().flat_map(|view| view.files.into_values()) {
            self.closed(kept);
        }
    }

    fn closed(&self, kept: Kept) {
        if let Some(name) = &kept.remove {
            self.remove_if_still(name, kept.id);
        }
        self.release(kept.id);
    }

    /// Removes a name if it is still this object's, and says so to whoever observes.
    pub(super) fn remove_if_still(&self, name: &Name, id: FileId) {
        let op = |change: &mut Change<'_>| unlink_if_still(change, name, id);
        let mut told = Vec::new();
        let mut touch = |touched: &[Touch]| {
            told = touched.to_vec();
            Ok(())
        };
        // Where it cannot be removed, the name stays.
        if self.change(Purpose::Clear, &mut touch, op, |()| ()).is_ok() {
            for touched in told {
                self.tell(Unasked::Changed(touched));
            }
        }
    }

    /// Opens a session whose paths begin at `root`; one that is resumed keeps what it has open.
    pub(super) fn admit(&self, session: u64, root: FileId) {
        self.state().sessions.entry(session).or_insert_with(|| Session::new(root));
    }

    /// Keeps an object of the present tree from being removed while a request goes on; false when it is gone.
    pub(super) fn hold(&self, id: FileId, volume: &Arc<Volume>) -> bool {
        let state = self.state();
        id.fs != 0 || (state.volume.id == volume.id && self.opens.hold(id))
    }

    /// Gives it back.
    pub(super) fn release(&self, id: FileId) {
        if id.fs == 0 {
            self.opens.release(id);
        }
        if self.opens.backlog() > 0 {
            self.collect(1);
        }
    }
}

/// Removes a name if it is still this object's. A directory is not removed so.
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
