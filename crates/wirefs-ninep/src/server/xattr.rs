//! Txattrwalk, Txattrcreate: extended attributes, read and written through fids.

use super::fids::{FidEntry, FidUse};
use super::{NineConversation, answers};
use crate::message::{Fid, Rmessage};
use crate::text::NineString;
use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};
use wirefs_client::call::Call;
use wirefs_op::Errno;
use wirefs_op::limits::XATTR_BYTES_MAX;

/// Of `setxattr(2)`: the attribute must be there.
const REPLACE: u32 = 2;

/// A value, or the list of names, as it was when the fid was made.
pub(super) struct XattrRead(Bytes);

impl XattrRead {
    pub(super) fn slice(&self, offset: u64, count: u32) -> Bytes {
        let length = self.0.len();
        let start = usize::try_from(offset).unwrap_or(length).min(length);
        self.0.slice(start..length.min(start + count as usize))
    }
}

/// A value that is about to be set.
pub(super) struct XattrWrite {
    name: Bytes,
    size: usize,
    flags: u32,
    value: Mutex<Vec<u8>>,
}

impl XattrWrite {
    /// Appends.
    ///
    /// # Errors
    /// `EINVAL`: not at the end. `ENOSPC`: more than was announced.
    pub(super) fn put(&self, offset: u64, data: &[u8]) -> Result<u32, Errno> {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        if offset != value.len() as u64 {
            return Err(Errno::Invalid);
        }
        if value.len() + data.len() > self.size {
            return Err(Errno::NoSpace);
        }
        value.extend_from_slice(data);
        Ok(data.len() as u32)
    }
}

impl NineConversation {
    /// An empty name asks for the list of names.
    pub(super) fn xattrwalk(&self, fid: Fid, newfid: Fid, name: &NineString) -> Result<Rmessage, Errno> {
        let entry = self.fid(fid)?;
        let (node, size_max) = (entry.place.node, XATTR_BYTES_MAX as u32);
        let call = match name.0.is_empty() {
            true => Call::Listxattr { node, size_max },
            false => Call::Getxattr { node, name: &name.0, size_max },
        };
        let value = answers::data(self.files.call(entry.caller, call))?;
        let size = value.len() as u64;
        let used = FidUse::XattrRead(Arc::new(XattrRead(value)));
        let entry = FidEntry { used, ..entry };
        if fid == newfid {
            self.set_fid(fid, entry)?
        } else {
            self.add_fid(newfid, entry)?
        }
        Ok(Rmessage::Xattrwalk { size })
    }

    pub(super) fn xattrcreate(
        &self,
        fid: Fid,
        name: &NineString,
        size: u64,
        flags: u32,
    ) -> Result<Rmessage, Errno> {
        let entry = self.fid(fid)?;
        if !matches!(entry.used, FidUse::Walked) {
            return Err(Errno::BadDescriptor);
        }
        let size = usize::try_from(size).ok().filter(|size| *size <= XATTR_BYTES_MAX).ok_or(Errno::TooBig)?;
        let write = XattrWrite { name: name.0.clone(), size, flags, value: Mutex::default() };
        self.set_fid(fid, FidEntry { used: FidUse::XattrWrite(Arc::new(write)), ..entry })?;
        Ok(Rmessage::Xattrcreate {})
    }

    /// Sets the value that was written. An empty one that must replace another is Linux's way to remove it.
    ///
    /// # Errors
    /// Less was written than announced, or the file system refuses.
    pub(super) fn set_xattr(&self, entry: &FidEntry, write: &XattrWrite) -> Result<(), Errno> {
        let value = write.value.lock().unwrap_or_else(PoisonError::into_inner);
        if value.len() != write.size {
            return Err(Errno::Invalid);
        }
        let (node, name) = (entry.place.node, &write.name[..]);
        let call = match value.is_empty() && write.flags == REPLACE {
            true => Call::Removexattr { node, name },
            false => Call::Setxattr { node, name, value: &value, flags: write.flags, kill_sgid: false },
        };
        answers::done(self.files.call(entry.caller, call))
    }
}
