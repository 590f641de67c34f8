//! Txattr: extended attributes, through fids of their own.

use super::At;
use crate::remote::{Dialect, OwnFid, WRONG_REPLY};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use wirefs_ninep::text::NineString;
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::Errno;
use wirefs_op::limits::XATTR_BYTES_MAX;
use wirefs_op::message::xattr::{Rxattr, Txattr, XattrAction};
use wirefs_op::wire::Data;

/// Of `setxattr(2)`: the attribute must be there. With an empty value it removes the attribute, as Linux asks for it.
const REPLACE: u32 = 2;

impl At<'_> {
    pub(super) fn xattr(&self, request: &Txattr) -> Result<Rxattr, Errno> {
        if self.remote.dialect == Dialect::Plan {
            return Err(Errno::NotSupported);
        }
        let found = self.locate(&request.target)?;
        let name = NineString::new(request.name.as_bytes());
        let value = match request.action {
            XattrAction::Read => return self.read_xattr(&found.own, name),
            XattrAction::List => return self.read_xattr(&found.own, NineString::default()),
            XattrAction::Set => (&request.value.0, request.flags),
            XattrAction::Remove => (&Bytes::new(), REPLACE),
        };
        let (value, flags) = value;
        let (own, _) = self.walk(&request.target.path)?;
        let fid = own.fid;
        let size = value.len() as u64;
        self.remote.ask(&Tmessage::Xattrcreate { fid, name, size, flags })?;
        if self.remote.write(fid, 0, value)? as usize != value.len() {
            return Err(Errno::NoSpace);
        }
        // The reply to the Tclunk says whether the attribute was set.
        own.disown();
        self.remote.ask(&Tmessage::Clunk { fid })?;
        Ok(Rxattr { stat: Some(self.remote.stat(found.own.fid)?), value: Data::default() })
    }

    fn read_xattr(&self, own: &OwnFid, name: NineString) -> Result<Rxattr, Errno> {
        let newfid = self.remote.new_fid();
        let walked = self.remote.ask(&Tmessage::Xattrwalk { fid: own.fid, newfid, name })?;
        let value = OwnFid { remote: Arc::clone(self.remote), fid: newfid };
        let Rmessage::Xattrwalk { size } = walked else { return Err(WRONG_REPLY) };
        let size = usize::try_from(size).ok().filter(|size| *size <= XATTR_BYTES_MAX).ok_or(Errno::Range)?;
        let mut bytes = BytesMut::with_capacity(size);
        while bytes.len() < size {
            let data =
                self.remote.read(value.fid, bytes.len() as u64, (size - bytes.len()) as u32, &|| false)?;
            if data.is_empty() {
                break;
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Rxattr { stat: None, value: Data(bytes.freeze()) })
    }
}
