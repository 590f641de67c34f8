//! The changes that a request will make, computed in advance for announcements.

use crate::fs::ModelIno;
use crate::tree::{ModelState, ResolvedObject};
use wirefs_op::message::copy::Tcopy;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::link::Tlink;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::Trename;
use wirefs_op::message::target::{Place, Target};
use wirefs_op::message::xattr::XattrAction;
use wirefs_op::{Errno, Kind, Request, SetStat};
use wirefs_server::{SessionKey, Touched};

impl ModelState {
    /// Returns the existing objects that will change if the request succeeds. NewInode objects need no announcement.
    pub(super) fn touches(&self, session: SessionKey, request: &Request) -> Vec<Touched> {
        let touches = match request {
            Request::Get(get) => self.get_touches(session, get),
            Request::Put(put) => self.put_touches(session, put),
            Request::Remove(remove) => self.remove_touches(session, remove),
            Request::Rename(rename) => self.rename_touches(session, rename),
            Request::Link(link) => self.link_touches(session, link),
            Request::Xattr(xattr) => match xattr.action {
                XattrAction::Set | XattrAction::Remove => self.target_touches(session, &xattr.target),
                XattrAction::Read | XattrAction::List => Ok(vec![]),
            },
            Request::Allocate(allocate) => self.target_touches(session, &allocate.target),
            Request::Copy(copy) => self.copy_touches(session, copy),
            Request::Statfs(_)
            | Request::Seek(_)
            | Request::Commit(_)
            | Request::Lock(_)
            | Request::Version(_)
            | Request::Attach(_)
            | Request::Flush(_)
            | Request::Ping(_)
            | Request::Find(_)
            | Request::Recalled(_)
            | Request::Number(_) => Ok(vec![]),
        };
        // A missing object is not changed: the request fails with the same error.
        touches.unwrap_or_default()
    }

    fn target_touches(&self, session: SessionKey, target: &Target) -> Result<Vec<Touched>, Errno> {
        Ok(vec![Touched::object(self.locate(session, target)?.ino.id())])
    }

    fn copy_touches(&self, session: SessionKey, copy: &Tcopy) -> Result<Vec<Touched>, Errno> {
        let from = self.locate(session, &copy.from)?.ino;
        let left = self.fs.contents(from)?.size().saturating_sub(copy.from_offset);
        if copy.length.min(left) == 0 { Ok(vec![]) } else { self.target_touches(session, &copy.to) }
    }

    fn get_touches(&self, session: SessionKey, get: &Tget) -> Result<Vec<Touched>, Errno> {
        if get.mode.has(GetMode::MORE) || get.mode.has(GetMode::ENTRY) {
            return Ok(vec![]);
        }
        self.closing_touches(session, self.locate(session, &get.target)?)
    }

    /// Returns the changes by closing a file.
    fn closing_touches(&self, session: SessionKey, object: ResolvedObject) -> Result<Vec<Touched>, Errno> {
        let held = object.fd.and_then(|fd| self.session(session).ok()?.files.get(&fd));
        Ok(match held.and_then(|held| held.remove.as_ref()) {
            Some((dir, name)) => self.removal_touches(*dir, name, object.ino),
            None => vec![],
        })
    }

    /// Returns the changes by removing a name, if it still belongs to this inode.
    pub(super) fn removal_touches(&self, dir: ModelIno, name: &[u8], ino: ModelIno) -> Vec<Touched> {
        let is_directory = self.fs.inode(ino).is_ok_and(|inode| inode.is_directory());
        if self.fs.lookup(dir, name) == Ok(ino) && !is_directory {
            vec![Touched::name(dir.id(), name), self.name_removal(ino)]
        } else {
            vec![]
        }
    }

    fn name_removal(&self, ino: ModelIno) -> Touched {
        let has_others = self.fs.inode(ino).is_ok_and(|inode| !inode.is_directory() && inode.nlink > 1);
        if has_others { Touched::with_other_names(ino.id()) } else { Touched::object(ino.id()) }
    }

    fn remove_touches(&self, session: SessionKey, remove: &Tremove) -> Result<Vec<Touched>, Errno> {
        let (dir, name) = self.entry(session, &remove.place)?;
        let removed = self.fs.lookup(dir, name)?;
        Ok(vec![Touched::name(dir.id(), name), self.name_removal(removed)])
    }

    fn rename_touches(&self, session: SessionKey, rename: &Trename) -> Result<Vec<Touched>, Errno> {
        let (from, to) = (self.entry(session, &rename.from)?, self.entry(session, &rename.to)?);
        let moved = self.fs.lookup(from.0, from.1)?;
        let replaced = self.fs.lookup(to.0, to.1).ok();
        if replaced == Some(moved) {
            return Ok(vec![]);
        }
        let names = [from, to].map(|(dir, name)| Touched::name(dir.id(), name));
        let objects = [Some(moved), replaced].into_iter().flatten().map(|ino| self.name_removal(ino));
        Ok(names.into_iter().chain(objects).collect())
    }

    fn link_touches(&self, session: SessionKey, link: &Tlink) -> Result<Vec<Touched>, Errno> {
        let object = self.locate(session, &link.target)?;
        let (dir, name) = self.entry(session, &link.to)?;
        Ok(vec![Touched::name(dir.id(), name), Touched::object(object.ino.id())])
    }

    fn put_touches(&self, session: SessionKey, put: &Tput) -> Result<Vec<Touched>, Errno> {
        let (mode, target) = (put.mode, &put.target);
        if mode.has(PutMode::NAMELESS) {
            return Ok(vec![]);
        }
        let place = Place { path: target.path.clone(), dir: target.id.filter(|_| mode.has(PutMode::CREATE)) };
        let object = if mode.has(PutMode::CREATE) {
            let (dir, name) = self.entry(session, &place)?;
            match self.fs.lookup(dir, name) {
                Ok(ino) => ResolvedObject { ino, kind: self.fs.inode(ino)?.kind(), fd: None },
                Err(_) => return Ok(vec![Touched::name(dir.id(), name)]),
            }
        } else {
            self.locate(session, target)?
        };
        let mut touches = Vec::new();
        if changes_object(put, object.kind) {
            touches.push(Touched::object(object.ino.id()));
        }
        let keeps = mode.has(PutMode::MORE);
        if !keeps {
            touches.extend(self.closing_touches(session, object)?);
        }
        // An object that cannot be held open loses its name at once.
        if mode.has(PutMode::REMOVE) && !(keeps && matches!(object.kind, Kind::File | Kind::Directory)) {
            let (dir, name) = self.entry(session, &place)?;
            touches.extend(self.removal_touches(dir, name, object.ino));
        }
        Ok(touches)
    }
}

fn changes_object(put: &Tput, kind: Kind) -> bool {
    let is_file = kind == Kind::File;
    (put.mode.has(PutMode::DATA) && is_file && !put.data.0.is_empty())
        || (put.mode.has(PutMode::STAT) && put.set != SetStat::default())
        || (put.mode.has(PutMode::KILL_PRIVILEGES) && is_file)
}
