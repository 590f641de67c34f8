//! Tgetattr, Tsetattr, Tstat, Twstat, Tstatfs.

use super::fids::{FidEntry, FidUse};
use super::open::OpenKind;
use super::rename::NOREPLACE;
use super::{NineConversation, answers};
use crate::attributes::{Attributes, SetAttributes};
use crate::message::{Fid, NineFsStat, Rmessage};
use crate::plan_stat::{DMDIR, PlanStat, SizedStat};
use std::sync::Arc;
use wirefs_client::call::{Answer, Call, Handle};
use wirefs_op::{Errno, Kind, SetStat, SetTime, Stat, Timestamp};

/// The type of a 9P file system in `statfs(2)`.
const V9FS_MAGIC: u32 = 0x0102_1997;

fn file_handle(entry: &FidEntry) -> Option<Handle> {
    match &entry.used {
        FidUse::Open(opened) if matches!(opened.kind, OpenKind::File(_)) => Some(opened.handle),
        FidUse::Open(_) | FidUse::Walked | FidUse::XattrRead(_) | FidUse::XattrWrite(_) => None,
    }
}

impl NineConversation {
    fn stat_of(&self, entry: &FidEntry) -> Result<Stat, Errno> {
        let call = Call::Getattr { node: entry.place.node, handle: file_handle(entry) };
        answers::stat(self.files.call(entry.caller, call))
    }

    fn set(&self, entry: &FidEntry, set: SetStat) -> Result<(), Errno> {
        if set.is_empty() {
            return Ok(());
        }
        let kill_privileges = set.size.is_some() && entry.caller.uid != 0;
        let (node, handle) = (entry.place.node, file_handle(entry));
        let call = Call::Setattr { node, handle, set, kill_privileges };
        answers::stat(self.files.call(entry.caller, call)).map(drop)
    }

    pub(super) fn getattr(&self, fid: Fid, mask: u64) -> Result<Rmessage, Errno> {
        let stat = self.stat_of(&self.fid(fid)?)?;
        Ok(Rmessage::Getattr { attributes: Attributes::of(&stat, mask) })
    }

    pub(super) fn setattr(&self, fid: Fid, set: SetAttributes) -> Result<Rmessage, Errno> {
        self.set(&self.fid(fid)?, set.to_set_stat())?;
        Ok(Rmessage::Setattr {})
    }

    pub(super) fn stat(&self, fid: Fid) -> Result<Rmessage, Errno> {
        let entry = self.fid(fid)?;
        let stat = PlanStat::of(&self.stat_of(&entry)?, entry.place.name());
        Ok(Rmessage::Stat { stat: SizedStat(stat) })
    }

    /// Changes attributes, then the name. A stat that changes nothing waits for the disk.
    pub(super) fn wstat(&self, fid: Fid, new: &PlanStat) -> Result<Rmessage, Errno> {
        let entry = self.fid(fid)?;
        if *new == PlanStat::unchanged() {
            if matches!(entry.used, FidUse::Open(_)) {
                self.fsync(fid, false)?;
            }
            return Ok(Rmessage::Wstat {});
        }
        let stat = self.stat_of(&entry)?;
        let is_directory = stat.kind == Kind::Directory;
        if new.mode != u32::MAX && (new.mode & DMDIR != 0) != is_directory {
            return Err(Errno::Invalid);
        }
        let group = std::str::from_utf8(&new.gid.0).ok().filter(|gid| !gid.is_empty());
        let time = |secs: u32| SetTime::At(Timestamp { secs: i64::from(secs), nanos: 0 });
        let set = SetStat {
            mode: (new.mode != u32::MAX).then_some((stat.mode & 0o7000) | (new.mode & 0o777)),
            uid: None,
            gid: group.map(str::parse).transpose().map_err(|_| Errno::Invalid)?,
            size: Some(new.length).filter(|length| *length != u64::MAX && !is_directory),
            atime: None,
            mtime: (new.mtime != u32::MAX).then(|| time(new.mtime)),
        };
        self.set(&entry, set)?;
        if !new.name.0.is_empty() && *new.name.0 != *entry.place.name() {
            let (dir, _) = entry.place.parent.as_ref().ok_or(Errno::Busy)?;
            let dir = Arc::clone(dir);
            self.rename_entry(fid, entry, &dir, &new.name.0, NOREPLACE)?;
        }
        Ok(Rmessage::Wstat {})
    }

    pub(super) fn statfs(&self, fid: Fid) -> Result<Rmessage, Errno> {
        let entry = self.fid(fid)?;
        match self.files.call(entry.caller, Call::Statfs { node: entry.place.node }) {
            Answer::FsStat(figures) => Ok(Rmessage::Statfs {
                figures: NineFsStat {
                    kind: V9FS_MAGIC,
                    block_bytes: figures.block_bytes,
                    blocks: figures.blocks,
                    blocks_free: figures.blocks_free,
                    blocks_available: figures.blocks_available,
                    files: figures.files,
                    files_free: figures.files_free,
                    fsid: 0,
                    name_bytes_max: figures.name_bytes_max,
                },
            }),
            Answer::Fail(errno) => Err(errno),
            _ => Err(Errno::Io),
        }
    }
}
