//! Tclunk: a fid is given back.

use super::NineConversation;
use super::fids::{FidEntry, FidUse};
use crate::message::{Fid, Rmessage};
use wirefs_op::Errno;

impl NineConversation {
    /// The fid is gone, whatever the answer.
    ///
    /// # Errors
    /// Fails if written data, or the attribute, did not reach the file.
    pub(super) fn clunk(&self, fid: Fid) -> Result<Rmessage, Errno> {
        let entry = self.take_fid(fid)?;
        self.close(&entry)?;
        if let FidUse::Open(opened) = &entry.used
            && opened.removes_on_close
        {
            self.remove_place(&entry.place, entry.caller)?;
        }
        Ok(Rmessage::Clunk {})
    }

    pub(super) fn close(&self, entry: &FidEntry) -> Result<(), Errno> {
        match &entry.used {
            FidUse::Open(opened) => opened.flush(entry.caller),
            FidUse::XattrWrite(write) => self.set_xattr(entry, write),
            FidUse::Walked | FidUse::XattrRead(_) => Ok(()),
        }
    }
}
