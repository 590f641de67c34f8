//! What the numbered changes of one session have created, so that requests may name it by the number of the change.
//!
//! A client that goes ahead of the server sends requests about an object before it knows its id (PROTOCOL.md, "Objects
//! without an id").

use std::collections::BTreeMap;
use wirefs_op::limits::LEDGER_MAX;
use wirefs_op::message::get::GetMode;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::target::{Fd, NOFD, Target};
use wirefs_op::{FileId, Request};

/// So many creations of a session are known: a client cannot have that many changes under way, so it has heard long since
/// what the older ones made.
pub(crate) const CREATIONS_MAX: usize = 4 * LEDGER_MAX as usize;

/// The request names the object of a change that has failed, created nothing, is not carried out yet, or is too long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownCreation;

/// Which object each change has created.
///
/// # Cost
/// About 40 bytes for each of the last 32,768.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Creations {
    by_number: BTreeMap<u64, FileId>,
    /// The fds that they left open: a file whose mode forbids writing is written through the one that created it.
    fds: BTreeMap<u64, Fd>,
}

impl Creations {
    /// The change `number` has created this object. The oldest is forgotten where it becomes too many.
    pub fn insert(&mut self, number: u64, id: FileId) {
        self.by_number.insert(number, id);
        if self.by_number.len() > CREATIONS_MAX {
            self.by_number.pop_first();
        }
    }

    /// It has left this fd open.
    pub(crate) fn opened(&mut self, number: u64, fd: Fd) {
        self.fds.insert(number, fd);
        if self.fds.len() > CREATIONS_MAX {
            self.fds.pop_first();
        }
    }

    /// All that are known, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u64, FileId)> + '_ {
        self.by_number.iter().map(|(number, id)| (*number, *id))
    }

    /// Puts the ids of objects in the place of numbers, and for data the fd that the creation has left open.
    ///
    /// # Errors
    /// Of one of them it is not known what it has created; the request is as it was then, or half resolved.
    pub(crate) fn resolve(&self, request: &mut Request) -> Result<(), UnknownCreation> {
        self.use_fd(request);
        for id in request.ids_mut().into_iter().flatten() {
            if let Some(number) = id.provisional_number() {
                *id = *self.by_number.get(&number).ok_or(UnknownCreation)?;
            }
        }
        Ok(())
    }

    /// Data goes through the fd that the creation has left open, whatever the file's mode; and where the file has lost its name
    /// since, which the path of the root stands for, everything does.
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

    /// Puts the fd that the creation has left open into the target, where that has no name any more or `always`. Tells whether it did.
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
