//! Tversion, Tauth, Tattach: which dialect is spoken, and to which tree.

use super::fids::{FidEntry, FidUse};
use super::{NineConversation, Place};
use crate::limits::{DEPTH_MAX, MSIZE_MAX, MSIZE_MIN};
use crate::message::{Fid, NOFID, Rmessage};
use crate::qid::Qid;
use crate::text::{NineString, Tail};
use wirefs_client::call::Caller;
use wirefs_op::{Errno, Frame, Tag};

/// The dialect of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// None is agreed on yet.
    None,
    /// 9P2000.
    Plan,
    /// 9P2000.L.
    Linux,
}

impl Dialect {
    /// The dialect for a version that a client proposes, and its name. Extensions that are not known are left out.
    fn of(version: &[u8]) -> (Dialect, &'static [u8]) {
        match version {
            b"9P2000.L" => (Dialect::Linux, b"9P2000.L"),
            _ if version.starts_with(b"9P2000") => (Dialect::Plan, b"9P2000"),
            _ => (Dialect::None, b"unknown"),
        }
    }
}

impl NineConversation {
    /// Begins anew: no fid and no request of before is left.
    pub(super) fn version(&self, tag: Tag, msize: u32, version: &NineString) -> Frame {
        let (mut dialect, mut name) = Dialect::of(&version.0);
        if msize < MSIZE_MIN {
            (dialect, name) = (Dialect::None, b"unknown");
        }
        let agreed = msize.min(MSIZE_MAX);
        drop(self.take_fids());
        let mut state = self.lock();
        state.running.cancel();
        (state.dialect, state.msize) = (dialect, agreed.max(MSIZE_MIN));
        Rmessage::Version { msize: agreed, version: NineString::new(name) }.encode(tag)
    }

    /// No authentication: whoever reaches the socket may use it.
    ///
    /// # Errors
    /// Always: the client goes on with an attach without an afid.
    pub(super) fn auth(&self) -> Result<Rmessage, Errno> {
        Err(Errno::NotFound)
    }

    /// Attaches to the root, or to a directory below it that `aname` names.
    ///
    /// # Errors
    /// As a walk; `EINVAL` for an afid, since this server gives out none.
    pub(super) fn attach(
        &self,
        fid: Fid,
        afid: Fid,
        uname: &NineString,
        aname: &NineString,
        uid: Tail,
    ) -> Result<Rmessage, Errno> {
        if afid != NOFID {
            return Err(Errno::Invalid);
        }
        let caller = Caller { uid: self.user(uname, uid), gid: self.users.gid, pid: 0 };
        let mut place = Place::root(&self.files);
        let names = aname.0.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        for name in names.take(DEPTH_MAX) {
            if name == b".." {
                return Err(Errno::Invalid);
            }
            place = Place::find(&place, caller, name)?.0;
        }
        let qid = Qid::of(&place.stat(caller)?);
        self.add_fid(fid, FidEntry { place, caller, used: FidUse::Walked })?;
        Ok(Rmessage::Attach { qid })
    }

    /// Returns the number of a user: the given one, or the name if that is a number.
    fn user(&self, uname: &NineString, uid: Tail) -> u32 {
        let spelled = || std::str::from_utf8(&uname.0).ok()?.parse().ok();
        uid.0.filter(|uid| *uid != u32::MAX).or_else(spelled).unwrap_or(self.users.uid)
    }
}
