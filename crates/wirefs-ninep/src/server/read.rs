//! Tread: of files, of directories in 9P2000, and of extended attributes.

use super::fids::FidUse;
use super::open::OpenKind;
use super::{NineConversation, answers};
use crate::message::{Fid, Rmessage};
use wirefs_client::call::Call;
use wirefs_op::Errno;
use wirefs_op::wire::Data;

impl NineConversation {
    pub(super) fn read(&self, fid: Fid, offset: u64, count: u32) -> Result<Rmessage, Errno> {
        let entry = self.fid(fid)?;
        let count = count.min(self.data_max());
        let opened = match &entry.used {
            FidUse::Open(opened) => opened,
            FidUse::XattrRead(value) => {
                return Ok(Rmessage::Read { data: Data(value.slice(offset, count)) });
            }
            FidUse::Walked | FidUse::XattrWrite(_) => return Err(Errno::BadDescriptor),
        };
        let data = match &opened.kind {
            OpenKind::Directory(cursor) => {
                self.read_directory(opened, cursor, entry.caller, offset, count)?
            }
            OpenKind::File(how) if !how.read => return Err(Errno::BadDescriptor),
            OpenKind::File(_) => {
                let call = Call::Read { node: opened.place.node, handle: opened.handle, offset, count };
                answers::data(self.files.call(entry.caller, call))?
            }
        };
        Ok(Rmessage::Read { data: Data(data) })
    }
}
