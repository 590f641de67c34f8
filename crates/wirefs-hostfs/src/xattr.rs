//! Txattr: extended attributes, including POSIX ACLs.

use crate::attributes::proc_path;
use crate::failure::{Failure, uninterrupted};
use crate::put::set_mode;
use crate::resolve::Object;
use crate::session::Session;
use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fd::AsFd;
use rustix::fs::XattrFlags;
use std::ffi::{CStr, CString};
use wirefs_op::Errno;
use wirefs_op::limits::XATTR_BYTES_MAX;
use wirefs_op::message::xattr::{Rxattr, Txattr, XattrAction};
use wirefs_op::wire::Data;
use wirefs_server::{PriorState, Replies, Touched};

/// The attribute that gives the rights of root to a program.
const CAPABILITIES: &CStr = c"security.capability";
/// The set-group-id bit of a mode.
const SET_GID: u32 = 0o2000;

impl Session {
    pub(crate) fn xattr(&self, request: &Txattr, replies: &mut dyn Replies) -> Result<Rxattr, Failure> {
        let object = self.locate(&request.target)?;
        // The descriptor may be an `O_PATH` one; the path in /proc works for attribute calls anyway.
        let path = proc_path(object.as_fd());
        let name = || CString::new(request.name.as_bytes()).map_err(|_| Errno::Invalid);
        match request.action {
            XattrAction::Read => {
                let name = name()?;
                value(|room| rustix::fs::getxattr(&path, &name, spare_capacity(room)).map(drop))
            }
            XattrAction::List => value(|room| rustix::fs::listxattr(&path, spare_capacity(room)).map(drop)),
            XattrAction::Set => {
                self.check_writable()?;
                let (name, flags) = (name()?, XattrFlags::from_bits_retain(request.flags));
                if !self.export.options.allows_set_id && name.as_c_str() == CAPABILITIES {
                    return Err(Errno::NotPermitted.into());
                }
                replies.touch(&[Touched::object(object.id)])?;
                replies.record_prior_state(&mut || (!flags.is_empty()).then(PriorState::default));
                let before = self.version_of(&object);
                uninterrupted(|| rustix::fs::setxattr(&path, &name, &request.value.0, flags))?;
                if request.kill_sgid {
                    self.kill_set_gid(&object)?;
                }
                self.changed(&object, before, replies)
            }
            XattrAction::Remove => {
                self.check_writable()?;
                let name = name()?;
                replies.touch(&[Touched::object(object.id)])?;
                replies.record_prior_state(&mut || Some(PriorState::default()));
                let before = self.version_of(&object);
                uninterrupted(|| rustix::fs::removexattr(&path, &name))?;
                self.changed(&object, before, replies)
            }
        }
    }

    fn kill_set_gid(&self, object: &Object) -> Result<(), Failure> {
        let mode = self.stat(object)?.mode;
        if mode & SET_GID != 0 {
            set_mode(object, mode & !SET_GID)?;
        }
        Ok(())
    }

    fn changed(
        &self,
        object: &Object,
        before: Option<u64>,
        replies: &mut dyn Replies,
    ) -> Result<Rxattr, Failure> {
        let stat = self.stat_leased(object, replies).ok();
        self.report_change(&Touched::object(object.id), before, stat.map(|stat| stat.version), replies);
        Ok(Rxattr { stat, value: Data(Bytes::new()) })
    }
}

/// The result of a call that fills a buffer of the largest size.
fn value(mut fill: impl FnMut(&mut Vec<u8>) -> Result<(), rustix::io::Errno>) -> Result<Rxattr, Failure> {
    let mut room = Vec::with_capacity(XATTR_BYTES_MAX);
    uninterrupted(|| fill(&mut room))?;
    // Most values are small and may be kept for long.
    room.shrink_to_fit();
    Ok(Rxattr { stat: None, value: Data(Bytes::from(room)) })
}
