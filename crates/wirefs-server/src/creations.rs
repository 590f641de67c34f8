//! The objects that the numbered changes of one session created. Requests may name such an object by the number of
//! the change.
//!
//! A client that executes optimistically sends requests about an object before it knows the object's id
//! (PROTOCOL.md, "Objects without an id").

use std::collections::BTreeMap;
use wirefs_op::limits::LEDGER_MAX;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::target::{Fd, NOFD, Target};
use wirefs_op::{FileId, Request};

/// Creations that are known for a session. A client has fewer unanswered changes, so it knows the ids of older
/// objects.
pub(crate) const CREATIONS_MAX: usize = 4 * LEDGER_MAX as usize;

/// The request names the object of a change that failed, created nothing, was not executed yet, or is too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownCreation;

/// The object that each change created.
///
/// # Cost
/// About 40 bytes for each of the last 32,768.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Creations {
    by_number: BTreeMap<u64, FileId>,
    /// The fds that the creations left open. A file whose mode forbids writing is written through such an fd.
    fds: BTreeMap<u64, Fd>,
}

impl Creations {
    /// Adds the object that the change `number` created, and removes the oldest one beyond the limit.
    pub fn insert(&mut self, number: u64, id: FileId) {
        self.by_number.insert(number, id);
        if self.by_number.len() > CREATIONS_MAX {
            self.by_number.pop_first();
        }
    }

    /// Adds the fd that the change left open.
    pub(crate) fn opened(&mut self, number: u64, fd: Fd) {
        self.fds.insert(number, fd);
        if self.fds.len() > CREATIONS_MAX {
            self.fds.pop_first();
        }
    }

    /// All known creations by number.
    pub fn iter(&self) -> impl Iterator<Item = (u64, FileId)> + '_ {
        self.by_number.iter().map(|(number, id)| (*number, *id))
    }

    /// Replaces numbers by the ids of objects, and for data sets the fd that the creation left open.
    ///
    /// # Errors
    /// An object is unknown; the request may be partly resolved.
    pub(crate) fn resolve(&self, request: &mut Request) -> Result<(), UnknownCreation> {
        self.use_fd(request);
        for id in request.ids_mut().into_iter().flatten() {
            if let Some(number) = id.provisional_number() {
                *id = *self.by_number.get(&number).ok_or(UnknownCreation)?;
            }
        }
        Ok(())
    }

    /// Sets the fd of the creation for data, whatever the mode of the file. Sets it for all requests if the file
    /// has lost its name, which the path of the root expresses.
    fn use_fd(&self, request: &mut Request) {
        match request {
            Request::Put(put) if !put.mode.has(PutMode::CREATE) => {
                let writes = put.mode.has(PutMode::DATA) || put.mode.has(PutMode::SYNC);
                if self.name_by_fd(&mut put.target, writes) {
                    put.mode = put.mode.and(PutMode::MORE);
                }
            }
            Request::Get(get) => {
                let is_by_fd = self.name_by_fd(&mut get.target, false);
                get.mode = if is_by_fd { get.mode.and(GetMode::MORE) } else { get.mode };
            }
            Request::Copy(copy) => {
                self.name_by_fd(&mut copy.from, true);
                self.name_by_fd(&mut copy.to, true);
            }
            Request::Xattr(xattr) => _ = self.name_by_fd(&mut xattr.target, false),
            Request::Lock(lock) => _ = self.name_by_fd(&mut lock.target, false),
            Request::Allocate(allocate) => _ = self.name_by_fd(&mut allocate.target, true),
            Request::Seek(seek) => _ = self.name_by_fd(&mut seek.target, false),
            Request::Commit(commit) => _ = self.name_by_fd(&mut commit.target, false),
            Request::Link(link) => _ = self.name_by_fd(&mut link.target, false),
            _ => {}
        }
    }

    /// Sets the fd of the creation in the target, if the target has no name or if `always` is set. Returns whether
    /// it did.
    fn name_by_fd(&self, target: &mut Target, always: bool) -> bool {
        let fd = self.fd_of(target).filter(|_| always || target.path.is_root());
        target.fd = fd.unwrap_or(target.fd);
        fd.is_some()
    }

    fn fd_of(&self, target: &Target) -> Option<Fd> {
        let number = target.id.filter(|_| target.fd == NOFD)?.provisional_number()?;
        self.fds.get(&number).copied()
    }
}

#[cfg(test)]
mod tests;
