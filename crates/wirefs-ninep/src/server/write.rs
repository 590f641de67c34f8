//! Twrite, Tfsync.

use super::fids::FidUse;
use super::open::OpenKind;
use super::{NineConversation, answers};
use crate::message::{Fid, Rmessage};
use bytes::Bytes;
use wirefs_client::call::{Call, WriteData};
use wirefs_op::Errno;

impl NineConversation {
    pub(super) fn write(&self, fid: Fid, offset: u64, data: &Bytes) -> Result<Rmessage, Errno> {
        let entry = self.fid(fid)?;
        if let FidUse::XattrWrite(write) = &entry.used {
            return write.put(offset, data).map(|count| Rmessage::Write { count });
        }
        let opened = entry.opened()?;
        match &opened.kind {
            OpenKind::File(how) if how.write => {}
            OpenKind::File(_) => return Err(Errno::BadDescriptor),
            OpenKind::Directory(_) => return Err(Errno::IsDirectory),
        }
        let call = Call::Write {
            node: opened.place.node,
            handle: opened.handle,
            offset,
            data: WriteData::Shared(data),
            cached: false,
            kill_privileges: entry.caller.uid != 0,
        };
        let count = answers::count(self.files.call(entry.caller, call))?;
        Ok(Rmessage::Write { count })
    }

    pub(super) fn fsync(&self, fid: Fid, data_only: bool) -> Result<Rmessage, Errno> {
        let entry = self.fid(fid)?;
        let opened = entry.opened()?;
        let (node, handle) = (opened.place.node, opened.handle);
        let call = match &opened.kind {
            OpenKind::File(_) => Call::Fsync { node, handle, data_only },
            OpenKind::Directory(_) => Call::Fsyncdir { node, handle, data_only },
        };
        answers::done(self.files.call(entry.caller, call))?;
        Ok(Rmessage::Fsync {})
    }
}
