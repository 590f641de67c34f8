//! Tremove, Tunlinkat.

use super::place::checked;
use super::{NineConversation, Place, answers};
use crate::message::{Fid, Rmessage};
use crate::text::NineString;
use std::sync::Arc;
use wirefs_client::call::{Call, Caller};
use wirefs_op::{Errno, Kind};

/// Of Tunlinkat: the name is a directory's (`AT_REMOVEDIR`).
const REMOVE_DIRECTORY: u32 = 0x200;

impl NineConversation {
    /// Removes the file of a fid. The fid is gone, whatever the answer.
    ///
    /// # Errors
    /// As a removal; `ESTALE` if the name means another file by now.
    pub(super) fn remove(&self, fid: Fid) -> Result<Rmessage, Errno> {
        let entry = self.take_fid(fid)?;
        self.close(&entry)?;
        self.remove_place(&entry.place, entry.caller)?;
        Ok(Rmessage::Remove {})
    }

    pub(super) fn remove_place(&self, place: &Arc<Place>, caller: Caller) -> Result<(), Errno> {
        // The root has no name.
        let (dir, name) = place.parent.as_ref().ok_or(Errno::Busy)?;
        let (found, stat) = Place::find(dir, caller, name)?;
        if found.node != place.node {
            return Err(Errno::Stale);
        }
        self.remove_name(dir, caller, name, stat.kind == Kind::Directory)
    }

    pub(super) fn unlinkat(&self, dir: Fid, name: &NineString, flags: u32) -> Result<Rmessage, Errno> {
        let dir = self.fid(dir)?;
        let is_directory = flags & REMOVE_DIRECTORY != 0;
        self.remove_name(&dir.place, dir.caller, &name.0, is_directory)?;
        Ok(Rmessage::Unlinkat {})
    }

    fn remove_name(&self, dir: &Place, caller: Caller, name: &[u8], is_directory: bool) -> Result<(), Errno> {
        let (parent, name) = (dir.node, checked(name)?);
        let call = if is_directory { Call::Rmdir { parent, name } } else { Call::Unlink { parent, name } };
        answers::done(self.files.call(caller, call))
    }
}
