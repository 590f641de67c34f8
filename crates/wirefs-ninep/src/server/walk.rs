//! Twalk.

use super::fids::{FidEntry, FidUse};
use super::{NineConversation, Place};
use crate::message::{Fid, Rmessage};
use crate::qid::Qid;
use crate::text::{Few, NineString};
use std::sync::Arc;
use wirefs_op::Errno;

impl NineConversation {
    /// Walks as far as it goes. Only if all names were found `newfid` stands for the last one.
    ///
    /// # Errors
    /// The first name cannot be walked. `EBADF` for a fid that is open and would stand for another file then.
    pub(super) fn walk(&self, fid: Fid, newfid: Fid, names: &[NineString]) -> Result<Rmessage, Errno> {
        let from = self.fid(fid)?;
        // 9P2000 refuses to walk from any open fid; clients of 9P2000.L walk from open directories.
        if !matches!(from.used, FidUse::Walked) && fid == newfid {
            return Err(Errno::BadDescriptor);
        }
        let mut place = Arc::clone(&from.place);
        let mut qids = Vec::with_capacity(names.len());
        for name in names {
            match Place::find(&place, from.caller, &name.0) {
                Ok((found, stat)) => {
                    place = found;
                    qids.push(Qid::of(&stat));
                }
                Err(errno) if qids.is_empty() => return Err(errno),
                Err(_) => return Ok(Rmessage::Walk { qids: Few(qids) }),
            }
        }
        let entry = FidEntry { place, caller: from.caller, used: FidUse::Walked };
        if fid == newfid {
            self.set_fid(fid, entry)?
        } else {
            self.add_fid(newfid, entry)?
        }
        Ok(Rmessage::Walk { qids: Few(qids) })
    }
}
