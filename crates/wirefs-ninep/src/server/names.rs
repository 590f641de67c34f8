//! New names: directories, symbolic links, nodes, hard links; and the target of a symbolic link.

use super::place::checked;
use super::{NineConversation, Place, answers};
use crate::message::{Fid, Rmessage};
use crate::qid::Qid;
use crate::text::NineString;
use std::sync::Arc;
use wirefs_client::call::{Answer, Call};
use wirefs_op::Errno;

impl NineConversation {
    pub(super) fn mkdir(&self, dir: Fid, name: &NineString, mode: u32, gid: u32) -> Result<Rmessage, Errno> {
        let dir = self.fid(dir)?;
        let (parent, name) = (dir.place.node, checked(&name.0)?);
        let call = Call::Mkdir { parent, name, mode: mode & 0o7777, umask: 0 };
        let qid = self.made(&dir.place, name, self.files.call(dir.with_group(gid), call))?;
        Ok(Rmessage::Mkdir { qid })
    }

    pub(super) fn symlink(
        &self,
        dir: Fid,
        name: &NineString,
        target: &NineString,
        gid: u32,
    ) -> Result<Rmessage, Errno> {
        let dir = self.fid(dir)?;
        let (parent, name) = (dir.place.node, checked(&name.0)?);
        let call = Call::Symlink { parent, name, target: &target.0 };
        let qid = self.made(&dir.place, name, self.files.call(dir.with_group(gid), call))?;
        Ok(Rmessage::Symlink { qid })
    }

    pub(super) fn mknod(
        &self,
        dir: Fid,
        name: &NineString,
        mode: u32,
        (major, minor): (u32, u32),
        gid: u32,
    ) -> Result<Rmessage, Errno> {
        let dir = self.fid(dir)?;
        let (parent, name) = (dir.place.node, checked(&name.0)?);
        // As Linux packs a device number into 32 bits.
        let rdev = (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & 0xf_ff00) << 12);
        let call = Call::Mknod { parent, name, mode, umask: 0, rdev };
        let qid = self.made(&dir.place, name, self.files.call(dir.with_group(gid), call))?;
        Ok(Rmessage::Mknod { qid })
    }

    pub(super) fn link(&self, dir: Fid, fid: Fid, name: &NineString) -> Result<Rmessage, Errno> {
        let (dir, file) = (self.fid(dir)?, self.fid(fid)?);
        let (parent, name) = (dir.place.node, checked(&name.0)?);
        let call = Call::Link { node: file.place.node, parent, name };
        self.made(&dir.place, name, self.files.call(dir.caller, call))?;
        Ok(Rmessage::Link {})
    }

    pub(super) fn readlink(&self, fid: Fid) -> Result<Rmessage, Errno> {
        let entry = self.fid(fid)?;
        let target = answers::data(self.files.call(entry.caller, Call::Readlink { node: entry.place.node }))?;
        Ok(Rmessage::Readlink { target: NineString::new(&target) })
    }

    /// Returns the qid of a new object, and gives its node back: no fid stands for it.
    fn made(&self, dir: &Arc<Place>, name: &[u8], answer: Answer) -> Result<Qid, Errno> {
        let entry = answers::entry(answer)?;
        drop(Place::of(dir, name, &entry));
        Ok(Qid::of(&entry.stat))
    }
}
