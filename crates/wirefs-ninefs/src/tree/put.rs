//! Tput: creates, opens, changes attributes, writes.

use super::At;
use super::open_files::{Found, OpenFile};
use crate::remote::{Dialect, WRONG_REPLY};
use std::sync::Arc;
use wirefs_ninep::attributes::SetAttributes;
use wirefs_ninep::message::Fid;
use wirefs_ninep::plan_stat::{DMDIR, PlanStat, SizedStat};
use wirefs_ninep::qid::Qid;
use wirefs_ninep::text::{NineString, Tail};
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::target::{NOFD, Place, Target};
use wirefs_op::{Errno, Kind, SetStat, SetTime, Stat};

/// Flags of Tlopen and Tlcreate, as of Linux.
const EXCLUSIVE: u32 = 0o200;
const APPEND: u32 = 0o2000;
/// In place of a version that is not known: it is none that a client has.
const UNKNOWN: u64 = u64::MAX;

/// The object of a Tput: open, or walked to.
enum Subject {
    Open(Arc<OpenFile>),
    Walked(Found),
}

impl Subject {
    fn fid(&self) -> Fid {
        match self {
            Subject::Open(file) => file.own.fid,
            Subject::Walked(found) => found.own.fid,
        }
    }
}

impl At<'_> {
    pub(super) fn put(&self, request: &Tput) -> Result<Rput, Errno> {
        let mode = request.mode;
        if mode.has(PutMode::NAMELESS) || mode.has(PutMode::REMOVE) {
            return Err(Errno::NotSupported);
        }
        let is_creation = mode.has(PutMode::CREATE);
        let (subject, is_new) = match &request.create {
            Some(create) if is_creation => self.create(request, create)?,
            Some(_) | None => (self.subject(request)?, false),
        };
        if mode.has(PutMode::KILL_PRIVILEGES) && !is_new {
            self.kill_privileges(subject.fid())?;
        }
        if mode.has(PutMode::STAT) {
            self.set(subject.fid(), &request.set)?;
        }
        let writes = mode.has(PutMode::DATA) && matches!(subject, Subject::Open(_));
        let count =
            if writes { self.remote.write(subject.fid(), request.offset, &request.data.0)? } else { 0 };
        if mode.has(PutMode::SYNC) {
            self.sync(subject.fid(), &subject)?;
        }
        let stat = self.remote.stat(subject.fid())?;
        let offset = if mode.has(PutMode::APPEND) {
            stat.size.saturating_sub(u64::from(count))
        } else {
            request.offset
        };
        let fd = match subject {
            Subject::Open(_) if mode.has(PutMode::MORE) && self.client.find(&request.target).is_some() => {
                request.target.fd
            }
            Subject::Open(file) if mode.has(PutMode::MORE) => self.client.files.keep(file),
            Subject::Open(_) | Subject::Walked(_) => NOFD,
        };
        if !mode.has(PutMode::MORE) {
            self.client.files.close(request.target.fd);
        }
        let before = if is_new { 0 } else { UNKNOWN };
        let dir = if is_creation { Some(self.stat_above(request)?) } else { None };
        Ok(Rput { fd, count, offset, before, stat: Some(stat), dir })
    }

    fn stat_above(&self, request: &Tput) -> Result<Stat, Errno> {
        let place = Place { path: request.target.path.clone(), dir: None };
        let (dir, _) = self.directory(&place)?;
        self.remote.stat(dir.own.fid)
    }

    /// An existing object, opened if the request needs that.
    fn subject(&self, request: &Tput) -> Result<Subject, Errno> {
        let mode = request.mode;
        let keeps = mode.has(PutMode::MORE);
        let writes = mode.has(PutMode::DATA) || (keeps && mode.has(PutMode::WRITE));
        let reads = keeps && mode.has(PutMode::READ);
        if writes || reads || keeps {
            let is_kept = self.client.find(&request.target).is_some();
            // An fid that writes at an offset cannot append.
            let flags =
                if mode.has(PutMode::APPEND) && self.remote.dialect == Dialect::Linux { APPEND } else { 0 };
            let flags = if is_kept && !mode.has(PutMode::DATA) { 0 } else { flags };
            return self.open(&request.target, reads, writes, flags).map(Subject::Open);
        }
        match self.client.find(&request.target) {
            Some(file) => Ok(Subject::Open(file)),
            None => self.locate(&request.target).map(Subject::Walked),
        }
    }

    /// Creates an object, or finds the file that is there. True: it is new.
    fn create(&self, request: &Tput, create: &Create) -> Result<(Subject, bool), Errno> {
        let place = Place { path: request.target.path.clone(), dir: request.target.id };
        let (dir, name) = self.directory(&place)?;
        let name = NineString::new(name);
        let mode = create.mode & !create.cred.umask & 0o7777;
        if create.kind != Kind::File {
            self.make(&dir, &name, request, create, mode)?;
            return Ok((Subject::Walked(self.locate_entry(&place)?), true));
        }
        let keeps = request.mode.has(PutMode::MORE);
        let (reads, writes) = (keeps && request.mode.has(PutMode::READ), true);
        let access = if reads { 2 } else { 1 };
        match self.create_file(&dir, &name, access, mode) {
            Ok(qid) => {
                // The directory's fid is the new file's now.
                let own = dir.own;
                Ok((Subject::Open(Arc::new(OpenFile { own, qid, reads, writes })), true))
            }
            Err(Errno::Exists) if !request.mode.has(PutMode::EXCLUSIVE) => {
                let target = Target { path: place.path, fd: NOFD, id: None };
                let writes = request.mode.has(PutMode::DATA) || (keeps && request.mode.has(PutMode::WRITE));
                Ok((Subject::Open(self.open(&target, reads || !writes, writes, 0)?), false))
            }
            Err(errno) => Err(errno),
        }
    }

    fn create_file(&self, dir: &Found, name: &NineString, access: u32, mode: u32) -> Result<Qid, Errno> {
        let (fid, name) = (dir.own.fid, name.clone());
        let request = match self.remote.dialect {
            Dialect::Linux => {
                Tmessage::Lcreate { fid, name, flags: access | EXCLUSIVE | 0o100, mode, gid: self.remote.gid }
            }
            Dialect::Plan => {
                // A Tcreate of 9P2000 may cut an existing file.
                if self.remote.walk_from(fid, &name).is_ok() {
                    return Err(Errno::Exists);
                }
                Tmessage::Create { fid, name, perm: mode & 0o777, mode: access as u8 }
            }
        };
        match self.remote.ask(&request)? {
            Rmessage::Lcreate { qid, .. } | Rmessage::Create { qid, .. } => Ok(qid),
            _ => Err(WRONG_REPLY),
        }
    }

    /// Makes anything but a file.
    fn make(
        &self,
        dir: &Found,
        name: &NineString,
        request: &Tput,
        create: &Create,
        mode: u32,
    ) -> Result<(), Errno> {
        let (fid, name, gid) = (dir.own.fid, name.clone(), self.remote.gid);
        let request = match (self.remote.dialect, create.kind) {
            (Dialect::Linux, Kind::Directory) => Tmessage::Mkdir { dir: fid, name, mode, gid },
            (Dialect::Linux, Kind::Symlink) => {
                Tmessage::Symlink { dir: fid, name, target: NineString::new(&request.data.0), gid }
            }
            (Dialect::Linux, kind) => {
                let rdev = create.rdev;
                let (major, minor) =
                    ((rdev & 0x000f_ff00) >> 8, (rdev & 0xff) | ((rdev >> 12) & 0x000f_ff00));
                Tmessage::Mknod { dir: fid, name, mode: kind.mode_bits() | mode, major, minor, gid }
            }
            (Dialect::Plan, Kind::Directory) => {
                if self.remote.walk_from(fid, &name).is_ok() {
                    return Err(Errno::Exists);
                }
                Tmessage::Create { fid, name, perm: DMDIR | (mode & 0o777), mode: 0 }
            }
            (Dialect::Plan, _) => return Err(Errno::NotSupported),
        };
        self.remote.ask(&request).map(drop)
    }

    fn kill_privileges(&self, fid: Fid) -> Result<(), Errno> {
        let stat = self.remote.stat(fid)?;
        let has_group_bit = stat.mode & 0o2010 == 0o2010;
        if stat.kind == Kind::File && (stat.mode & 0o4000 != 0 || has_group_bit) {
            let mode = stat.mode & !0o4000 & if has_group_bit { !0o2000 } else { !0 };
            self.set(fid, &SetStat { mode: Some(mode), ..SetStat::default() })?;
        }
        Ok(())
    }

    fn set(&self, fid: Fid, set: &SetStat) -> Result<(), Errno> {
        if set.is_empty() {
            return Ok(());
        }
        let request = match self.remote.dialect {
            Dialect::Linux => Tmessage::Setattr { fid, set: SetAttributes::of(set) },
            Dialect::Plan => {
                let current = self.remote.stat(fid)?;
                let directory = if current.kind == Kind::Directory { DMDIR } else { 0 };
                let unchanged = PlanStat::unchanged();
                let secs = |time: SetTime| match time {
                    SetTime::At(time) => u32::try_from(time.secs).unwrap_or(0),
                    // The server's clock is not asked: the client's kernel gives its own time elsewhere too.
                    SetTime::Now => u32::MAX,
                };
                let stat = PlanStat {
                    mode: set.mode.map_or(u32::MAX, |mode| directory | (mode & 0o777)),
                    length: set.size.unwrap_or(u64::MAX),
                    mtime: set.mtime.map_or(u32::MAX, secs),
                    ..unchanged
                };
                if stat == PlanStat::unchanged() {
                    return Ok(());
                }
                Tmessage::Wstat { fid, stat: SizedStat(stat) }
            }
        };
        self.remote.ask(&request).map(drop)
    }

    fn sync(&self, fid: Fid, subject: &Subject) -> Result<(), Errno> {
        match (self.remote.dialect, subject) {
            (Dialect::Linux, Subject::Open(_)) => {
                self.remote.ask(&Tmessage::Fsync { fid, data_only: Tail(Some(0)) }).map(drop)
            }
            (Dialect::Plan, _) => {
                let stat = SizedStat(PlanStat::unchanged());
                self.remote.ask(&Tmessage::Wstat { fid, stat }).map(drop)
            }
            // Without an open fid there is nothing that 9P could sync.
            (Dialect::Linux, Subject::Walked(_)) => Ok(()),
        }
    }
}
