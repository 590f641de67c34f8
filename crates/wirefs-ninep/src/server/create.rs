//! Tcreate, Tlcreate.

use super::fids::{FidEntry, FidUse};
use super::open::{OpenKind, Opened, how_of_flags, how_of_mode, removes_on_close};
use super::place::checked;
use super::{NineConversation, Place, answers};
use crate::message::{Fid, Rmessage};
use crate::plan_stat::DMDIR;
use crate::qid::Qid;
use crate::text::NineString;
use std::sync::Arc;
use wirefs_client::call::{Call, Caller, OpenHow};
use wirefs_op::{Errno, Stat};

impl NineConversation {
    pub(super) fn lcreate(
        &self,
        fid: Fid,
        name: &NineString,
        flags: u32,
        mode: u32,
        gid: u32,
    ) -> Result<Rmessage, Errno> {
        let dir = self.walked(fid)?;
        let how = how_of_flags(flags);
        let (stat, opened) = self.create_file(&dir.place, dir.with_group(gid), &name.0, mode, how)?;
        let iounit = self.become_open(fid, dir, opened)?;
        Ok(Rmessage::Lcreate { qid: Qid::of(&stat), iounit })
    }

    /// Makes a file or a directory, and opens it. The permissions are bounded by the directory's, as 9P2000 says.
    pub(super) fn create(&self, fid: Fid, name: &NineString, perm: u32, mode: u8) -> Result<Rmessage, Errno> {
        let dir = self.walked(fid)?;
        let (caller, how) = (dir.caller, how_of_mode(mode));
        let bounds = dir.place.stat(caller)?.mode;
        let (stat, mut opened) = if perm & DMDIR != 0 {
            let mode = perm & (!0o777 | bounds) & 0o777;
            let parent = dir.place.node;
            let call = Call::Mkdir { parent, name: checked(&name.0)?, mode, umask: 0 };
            let entry = answers::entry(self.files.call(caller, call))?;
            let place = Place::of(&dir.place, &name.0, &entry);
            (entry.stat, self.open_place(&place, &entry.stat, caller, how, true)?)
        } else {
            let how = OpenHow { truncate: false, exclusive: true, ..how };
            let mode = perm & (!0o666 | bounds) & 0o777;
            self.create_file(&dir.place, caller, &name.0, mode, how)?
        };
        opened.removes_on_close = removes_on_close(mode);
        let iounit = self.become_open(fid, dir, opened)?;
        Ok(Rmessage::Create { qid: Qid::of(&stat), iounit })
    }

    fn walked(&self, fid: Fid) -> Result<FidEntry, Errno> {
        let dir = self.fid(fid)?;
        if matches!(dir.used, FidUse::Walked) { Ok(dir) } else { Err(Errno::BadDescriptor) }
    }

    fn create_file(
        &self,
        dir: &Arc<Place>,
        caller: Caller,
        name: &[u8],
        mode: u32,
        how: OpenHow,
    ) -> Result<(Stat, Opened), Errno> {
        let (parent, name) = (dir.node, checked(name)?);
        let call = Call::Create { parent, name, mode: mode & 0o7777, umask: 0, how };
        let (entry, handle) = answers::created(self.files.call(caller, call))?;
        let place = Place::of(dir, name, &entry);
        Ok((entry.stat, Opened::new(&self.files, &place, handle, OpenKind::File(how))))
    }

    /// The directory's fid becomes the new file's.
    fn become_open(&self, fid: Fid, dir: FidEntry, opened: Opened) -> Result<u32, Errno> {
        let place = Arc::clone(&opened.place);
        let used = FidUse::Open(Arc::new(opened));
        self.set_fid(fid, FidEntry { place, used, ..dir })?;
        Ok(self.data_max())
    }
}
