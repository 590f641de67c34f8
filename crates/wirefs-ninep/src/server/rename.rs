//! Trename, Trenameat, and the rename of Twstat.

use super::fids::FidEntry;
use super::place::checked;
use super::{NineConversation, Place, answers};
use crate::message::{Fid, Rmessage};
use crate::text::NineString;
use std::sync::Arc;
use wirefs_client::call::Call;
use wirefs_op::Errno;

/// Of `renameat2`: the new name must be free.
pub(super) const NOREPLACE: u32 = 1;

impl NineConversation {
    pub(super) fn rename(&self, fid: Fid, dir: Fid, name: &NineString) -> Result<Rmessage, Errno> {
        let (entry, dir) = (self.fid(fid)?, self.fid(dir)?);
        self.rename_entry(fid, entry, &dir.place, &name.0, 0)?;
        Ok(Rmessage::Rename {})
    }

    /// Renames the file of a fid, which stands for it under the new name then.
    pub(super) fn rename_entry(
        &self,
        fid: Fid,
        entry: FidEntry,
        to: &Arc<Place>,
        to_name: &[u8],
        flags: u32,
    ) -> Result<(), Errno> {
        let caller = entry.caller;
        let (from, name) = entry.place.parent.as_ref().ok_or(Errno::Busy)?;
        if Place::find(from, caller, name)?.0.node != entry.place.node {
            return Err(Errno::Stale);
        }
        let call =
            Call::Rename { parent: from.node, name, to_parent: to.node, to_name: checked(to_name)?, flags };
        answers::done(self.files.call(caller, call))?;
        // Another rename may have been faster: then the fid stays with the old name.
        if let Ok((found, _)) = Place::find(to, caller, to_name)
            && found.node == entry.place.node
        {
            self.set_fid(fid, FidEntry { place: found, ..entry })?;
        }
        Ok(())
    }

    pub(super) fn renameat(
        &self,
        dir: Fid,
        name: &NineString,
        to_dir: Fid,
        to_name: &NineString,
    ) -> Result<Rmessage, Errno> {
        let (from, to) = (self.fid(dir)?, self.fid(to_dir)?);
        let call = Call::Rename {
            parent: from.place.node,
            name: checked(&name.0)?,
            to_parent: to.place.node,
            to_name: checked(&to_name.0)?,
            flags: 0,
        };
        answers::done(self.files.call(from.caller, call))?;
        Ok(Rmessage::Renameat {})
    }
}
