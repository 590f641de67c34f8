//! Tremove, Trename, Tlink.

use super::At;
use crate::remote::Dialect;
use wirefs_ninep::Tmessage;
use wirefs_ninep::plan_stat::{PlanStat, SizedStat};
use wirefs_ninep::text::NineString;
use wirefs_op::Errno;
use wirefs_op::message::link::{Rlink, Tlink};
use wirefs_op::message::remove::{Rremove, Tremove};
use wirefs_op::message::rename::{NOREPLACE, Rrename, Trename};

/// Of Tunlinkat: the name is a directory's.
const REMOVE_DIRECTORY: u32 = 0x200;

impl At<'_> {
    pub(super) fn remove(&self, request: &Tremove) -> Result<Rremove, Errno> {
        let (dir, name) = self.directory(&request.place)?;
        match self.remote.dialect {
            Dialect::Linux => {
                let flags = if request.directory { REMOVE_DIRECTORY } else { 0 };
                let unlink = Tmessage::Unlinkat { dir: dir.own.fid, name: NineString::new(name), flags };
                match self.remote.ask(&unlink) {
                    Err(Errno::NotSupported | Errno::NotImplemented) => self.remove_walked(request)?,
                    outcome => drop(outcome?),
                }
            }
            Dialect::Plan => self.remove_walked(request)?,
        }
        Ok(Rremove { dir: Some(self.remote.stat(dir.own.fid)?) })
    }

    /// By a fid of the object itself, which is gone with it.
    fn remove_walked(&self, request: &Tremove) -> Result<(), Errno> {
        let found = self.locate_entry(&request.place)?;
        match (found.is_directory(), request.directory) {
            (true, false) => return Err(Errno::IsDirectory),
            (false, true) => return Err(Errno::NotDirectory),
            (true, true) | (false, false) => {}
        }
        let fid = found.own.fid;
        // Tremove gives the fid back; a Tclunk behind it would be of a fid that is not there.
        let outcome = self.remote.ask(&Tmessage::Remove { fid });
        found.own.disown();
        outcome.map(drop)
    }

    pub(super) fn rename(&self, request: &Trename) -> Result<Rrename, Errno> {
        if request.flags & !NOREPLACE != 0 {
            return Err(Errno::Invalid);
        }
        let (from, name) = self.directory(&request.from)?;
        let (to, to_name) = self.directory(&request.to)?;
        if request.flags & NOREPLACE != 0 && self.locate_entry(&request.to).is_ok() {
            return Err(Errno::Exists);
        }
        match self.remote.dialect {
            Dialect::Linux => {
                let rename = Tmessage::Renameat {
                    dir: from.own.fid,
                    name: NineString::new(name),
                    to_dir: to.own.fid,
                    to_name: NineString::new(to_name),
                };
                match self.remote.ask(&rename) {
                    Err(Errno::NotSupported | Errno::NotImplemented) => {
                        let found = self.locate_entry(&request.from)?;
                        let name = NineString::new(to_name);
                        self.remote.ask(&Tmessage::Rename { fid: found.own.fid, dir: to.own.fid, name })?;
                    }
                    outcome => drop(outcome?),
                }
            }
            // 9P2000 renames within a directory alone.
            Dialect::Plan if from.qid.path != to.qid.path => return Err(Errno::CrossDevice),
            Dialect::Plan => {
                let found = self.locate_entry(&request.from)?;
                let stat = PlanStat { name: NineString::new(to_name), ..PlanStat::unchanged() };
                self.remote.ask(&Tmessage::Wstat { fid: found.own.fid, stat: SizedStat(stat) })?;
            }
        }
        let moved = self.locate_entry(&request.to)?;
        Ok(Rrename {
            stat: Some(self.remote.stat(moved.own.fid)?),
            from_dir: Some(self.remote.stat(from.own.fid)?),
            to_dir: Some(self.remote.stat(to.own.fid)?),
        })
    }

    pub(super) fn link(&self, request: &Tlink) -> Result<Rlink, Errno> {
        if self.remote.dialect == Dialect::Plan {
            return Err(Errno::NotSupported);
        }
        let (dir, name) = self.directory(&request.to)?;
        let found = self.locate(&request.target)?;
        let link = Tmessage::Link { dir: dir.own.fid, fid: found.own.fid, name: NineString::new(name) };
        self.remote.ask(&link)?;
        let stat = self.remote.stat(found.own.fid)?;
        Ok(Rlink { stat: Some(stat), dir: Some(self.remote.stat(dir.own.fid)?) })
    }
}
