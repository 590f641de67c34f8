//! The fids of a conversation.

use super::open::Opened;
use super::xattr::{XattrRead, XattrWrite};
use super::{NineConversation, Place};
use crate::limits::FIDS_MAX;
use crate::message::{Fid, NOFID};
use std::collections::BTreeMap;
use std::sync::Arc;
use wirefs_client::call::Caller;
use wirefs_op::Errno;

/// The use of a fid.
#[derive(Clone)]
pub(super) enum FidUse {
    /// None: the fid was walked to.
    Walked,
    /// An open file or directory.
    Open(Arc<Opened>),
    /// An extended attribute is read.
    XattrRead(Arc<XattrRead>),
    /// An extended attribute is written when the fid is given back.
    XattrWrite(Arc<XattrWrite>),
}

/// A fid: a file, the user, and its use.
#[derive(Clone)]
pub(super) struct FidEntry {
    pub(super) place: Arc<Place>,
    pub(super) caller: Caller,
    pub(super) used: FidUse,
}

impl FidEntry {
    /// The caller with this group, which new objects get.
    pub(super) fn with_group(&self, gid: u32) -> Caller {
        Caller { gid, ..self.caller }
    }

    /// The open file.
    ///
    /// # Errors
    /// `EBADF`: the fid is not open.
    pub(super) fn opened(&self) -> Result<&Arc<Opened>, Errno> {
        match &self.used {
            FidUse::Open(opened) => Ok(opened),
            FidUse::Walked | FidUse::XattrRead(_) | FidUse::XattrWrite(_) => Err(Errno::BadDescriptor),
        }
    }
}

/// All of them, by number.
#[derive(Default)]
pub(super) struct Fids(BTreeMap<Fid, FidEntry>);

impl NineConversation {
    /// Returns what a fid stands for now.
    ///
    /// # Errors
    /// `EBADF`: there is no such fid.
    pub(super) fn fid(&self, fid: Fid) -> Result<FidEntry, Errno> {
        self.lock().fids.0.get(&fid).cloned().ok_or(Errno::BadDescriptor)
    }

    /// Adds a fid.
    ///
    /// # Errors
    /// `EBADF`: its number is in use, or none. `EMFILE`: there are too many.
    pub(super) fn add_fid(&self, fid: Fid, entry: FidEntry) -> Result<(), Errno> {
        let mut state = self.lock();
        let refused = match state.fids.0.len() {
            _ if fid == NOFID || state.fids.0.contains_key(&fid) => Errno::BadDescriptor,
            FIDS_MAX.. => Errno::TooManyOpen,
            _ => {
                state.fids.0.insert(fid, entry);
                return Ok(());
            }
        };
        // Dropping the entry calls the files, which must not happen under the lock.
        drop(state);
        drop(entry);
        Err(refused)
    }

    /// Changes a fid, if it is there still.
    ///
    /// # Errors
    /// `EBADF`: it is gone.
    pub(super) fn set_fid(&self, fid: Fid, entry: FidEntry) -> Result<(), Errno> {
        let replaced = match self.lock().fids.0.get_mut(&fid) {
            Some(present) => Ok(std::mem::replace(present, entry)),
            None => Err(entry),
        };
        replaced.map(drop).map_err(|_| Errno::BadDescriptor)
    }

    /// Takes a fid away.
    ///
    /// # Errors
    /// `EBADF`: there is no such fid.
    pub(super) fn take_fid(&self, fid: Fid) -> Result<FidEntry, Errno> {
        self.lock().fids.0.remove(&fid).ok_or(Errno::BadDescriptor)
    }

    /// Takes all fids away: the conversation begins anew.
    pub(super) fn take_fids(&self) -> Fids {
        std::mem::take(&mut self.lock().fids)
    }
}
