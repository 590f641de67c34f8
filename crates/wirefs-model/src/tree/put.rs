//! Tput: create, change attributes, write, keep open or close.

use crate::fs::{ModelIno, NewInode};
use crate::tree::{ModelState, ResolvedObject};
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::{NOFD, Place};
use wirefs_op::{Errno, Kind};
use wirefs_server::SessionKey;

/// The target of a Tput.
struct PutTarget {
    object: ResolvedObject,
    is_new: bool,
    /// The parent directory, with CREATE.
    dir: Option<ModelIno>,
    /// The name, if known.
    name: Option<(ModelIno, Vec<u8>)>,
}

impl ModelState {
    pub(super) fn put(&mut self, session: SessionKey, request: &Tput) -> Result<Rput, Errno> {
        let mode = request.mode;
        let subject = if mode.has(PutMode::CREATE) {
            self.created(session, request)?
        } else {
            self.existing(session, request)?
        };
        let object = subject.object;
        self.check_openable(request, object)?;
        let before = if subject.is_new { 0 } else { self.fs.stat(object.ino)?.version };
        // Held, so that it survives the removal of its name.
        self.fs.hold(object.ino);
        let done = self.change(session, request, &subject);
        self.fs.release(object.ino);
        let (fd, count, offset, stat) = done?;
        let dir = subject.dir.and_then(|dir| self.stat(dir));
        Ok(Rput { fd, count, offset, before, stat, dir })
    }

    fn existing(&self, session: SessionKey, request: &Tput) -> Result<PutTarget, Errno> {
        let object = self.locate(session, &request.target)?;
        let name = if request.mode.has(PutMode::REMOVE) {
            let place = Place { path: request.target.path.clone(), dir: None };
            let (dir, name) = self.entry(session, &place)?;
            Some((dir, name.to_vec()))
        } else {
            None
        };
        Ok(PutTarget { object, is_new: false, dir: None, name })
    }

    fn created(&mut self, session: SessionKey, request: &Tput) -> Result<PutTarget, Errno> {
        let create = request.create.as_ref().ok_or(Errno::Invalid)?;
        let new = NewInode {
            kind: create.kind,
            mode: create.mode & 0o7777 & !create.cred.umask,
            uid: create.cred.uid,
            gid: create.cred.gid,
            rdev: create.rdev,
            target: request.data.0.to_vec(),
        };
        if request.mode.has(PutMode::NAMELESS) {
            if create.kind != Kind::File {
                return Err(Errno::Invalid);
            }
            let dir = self.directory(session, &request.target.path, request.target.id)?;
            let ino = self.fs.create_unnamed(dir, &new)?;
            let object = ResolvedObject { ino, kind: Kind::File, fd: None };
            return Ok(PutTarget { object, is_new: true, dir: Some(dir), name: None });
        }
        if request.target.path.is_root() {
            return Err(Errno::Exists);
        }
        let place = Place { path: request.target.path.clone(), dir: request.target.id };
        let (dir, name) = self.entry(session, &place)?;
        let found = self.fs.lookup(dir, name).ok();
        let found = found.filter(|_| create.kind == Kind::File && !request.mode.has(PutMode::EXCLUSIVE));
        let ino = match found {
            Some(ino) if self.fs.inode(ino)?.kind() != Kind::File => return Err(Errno::Exists),
            Some(ino) => ino,
            None => self.fs.create(dir, name, &new)?,
        };
        let object = ResolvedObject { ino, kind: create.kind, fd: None };
        Ok(PutTarget { object, is_new: found.is_none(), dir: Some(dir), name: Some((dir, name.to_vec())) })
    }

    /// Checks that the object can be written or resized, if requested.
    fn check_openable(&self, request: &Tput, object: ResolvedObject) -> Result<(), Errno> {
        let truncates = request.mode.has(PutMode::STAT) && request.set.size.is_some();
        let is_target = object.kind == Kind::Symlink && request.mode.has(PutMode::CREATE) && !truncates;
        let writes = request.mode.has(PutMode::DATA) && !is_target || truncates;
        match object.kind {
            Kind::File => Ok(()),
            Kind::Directory if writes => Err(Errno::IsDirectory),
            Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice if writes => {
                Err(Errno::Invalid)
            }
            Kind::Directory
            | Kind::Symlink
            | Kind::Fifo
            | Kind::Socket
            | Kind::CharDevice
            | Kind::BlockDevice => Ok(()),
        }
    }

    fn change(
        &mut self,
        session: SessionKey,
        request: &Tput,
        subject: &PutTarget,
    ) -> Result<(wirefs_op::message::target::Fd, u32, u64, Option<wirefs_op::Stat>), Errno> {
        let (mode, object) = (request.mode, subject.object);
        if mode.has(PutMode::KILL_PRIVILEGES) && object.kind == Kind::File && !subject.is_new {
            self.fs.kill_privileges(object.ino)?;
        }
        if mode.has(PutMode::STAT) {
            self.fs.set(object.ino, &request.set)?;
        }
        let (mut count, mut offset) = (0, request.offset);
        if mode.has(PutMode::DATA) && object.kind == Kind::File {
            if mode.has(PutMode::APPEND) {
                offset = self.fs.contents(object.ino)?.size();
            }
            self.fs.write(object.ino, offset, &request.data.0)?;
            count = request.data.0.len() as u32;
        }
        let stat = self.stat(object.ino);
        let opens = matches!(object.kind, Kind::File | Kind::Directory);
        let fd = if opens && mode.has(PutMode::MORE) { self.keep(session, object)? } else { NOFD };
        match &subject.name {
            Some((dir, name)) if mode.has(PutMode::REMOVE) => match self.files(session)?.get_mut(&fd) {
                Some(held) => held.remove = Some((*dir, name.clone())),
                None => self.remove_if_unchanged(*dir, name, object.ino),
            },
            Some(_) | None => {}
        }
        if fd == NOFD {
            self.close(session, object)?;
        }
        Ok((fd, count, offset, stat))
    }
}
