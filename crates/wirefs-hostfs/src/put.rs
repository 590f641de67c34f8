//! Tput: creates, opens, changes attributes and writes in one request.

mod create;
mod set;
mod write;

pub(crate) use set::set_mode;

use crate::attributes;
use crate::commit::sync;
use crate::failure::{Failure, uninterrupted};
use crate::open_files::{Access, OpenFile, RemoveOnClose};
use crate::resolve::{Entry, Object};
use crate::session::Session;
use rustix::fd::AsFd;
use std::sync::Arc;
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::{Fd, NOFD, Place};
use wirefs_op::{Errno, Kind, Stat};
use wirefs_server::Replies;
use write::Written;

/// The object that a Tput works on.
struct Subject {
    object: Object,
    place: Where,
    /// Created by this request.
    is_new: bool,
}

/// Where the object is, as far as the request needs to know.
enum Where {
    /// An existing object; its name does not matter.
    Anywhere,
    /// An existing object whose name is to be removed.
    Named(Entry),
    /// CREATE at this name.
    Entry(Entry),
    /// CREATE without a name in this directory.
    Nameless(Object),
}

impl Session {
    pub(crate) fn put(&self, request: &Tput, replies: &mut dyn Replies) -> Result<Rput, Failure> {
        let mode = request.mode;
        if is_change(mode) {
            self.check_writable()?;
        }
        let subject = self.subject(request)?;
        let object = &subject.object;
        let file = self.open_for(request, object)?;
        let turn = self.export.changes.turn(object.id);
        let before = match subject.is_new {
            true => 0,
            false => attributes::version(&attributes::statx(object.as_fd(), c"")?),
        };
        if mode.has(PutMode::KILL_PRIVILEGES) && object.kind == Kind::File {
            self.kill_privileges(object, mode.has(PutMode::STAT) && request.set.mode.is_some())?;
        }
        if mode.has(PutMode::STAT) {
            set::apply(object, file.as_deref(), &request.set)?;
        }
        let is_write = mode.has(PutMode::DATA) && object.kind != Kind::Symlink;
        let written = match &file {
            Some(file) if is_write => write::write(file, request)?,
            Some(_) | None => Written::nothing(request.offset),
        };
        let stat = self.stat(object)?;
        drop(turn);
        let fd = self.settle(mode, &subject, file.as_ref(), &stat)?;
        let dir = subject.directory().and_then(|dir| self.stat(dir).ok());
        if mode.has(PutMode::SYNC) {
            // All is done; the next change need not wait for the disk.
            replies.pass_turn();
            self.sync_put(mode, &subject, file.as_ref())?;
        }
        Ok(Rput { fd, count: written.count, offset: written.offset, before, stat: Some(stat), dir })
    }

    fn subject(&self, request: &Tput) -> Result<Subject, Failure> {
        if request.mode.has(PutMode::CREATE) {
            return self.create(request);
        }
        let object = self.locate(&request.target)?;
        let place = if request.mode.has(PutMode::REMOVE) {
            let path = request.target.path.clone();
            Where::Named(self.entry(&Place { path, dir: None })?)
        } else {
            Where::Anywhere
        };
        Ok(Subject { object, place, is_new: false })
    }

    /// Opens the object for all that the request does with it; `None` when nothing needs it open.
    fn open_for(&self, request: &Tput, object: &Object) -> Result<Option<Arc<OpenFile>>, Failure> {
        let mode = request.mode;
        let keeps = mode.has(PutMode::MORE);
        let truncates = mode.has(PutMode::STAT) && request.set.size.is_some();
        let writes = mode.has(PutMode::DATA) || truncates;
        let wanted = Access {
            read: keeps && mode.has(PutMode::READ),
            write: writes || (keeps && mode.has(PutMode::WRITE)),
        };
        match object.kind {
            Kind::File if keeps => Ok(Some(self.open_to_keep(object, wanted)?)),
            Kind::File if writes => Ok(Some(object.open(wanted)?)),
            Kind::Directory if writes => Err(Errno::IsDirectory.into()),
            Kind::Directory if keeps => Ok(Some(self.open_to_keep(object, Access::READ)?)),
            // The data of a link to create is its target.
            Kind::Symlink if mode.has(PutMode::CREATE) && !truncates => Ok(None),
            Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice if writes => {
                Err(Errno::Invalid.into())
            }
            Kind::File
            | Kind::Directory
            | Kind::Symlink
            | Kind::Fifo
            | Kind::Socket
            | Kind::CharDevice
            | Kind::BlockDevice => Ok(None),
        }
    }

    fn sync_put(
        &self,
        mode: PutMode,
        subject: &Subject,
        file: Option<&Arc<OpenFile>>,
    ) -> Result<(), Failure> {
        match (file, subject.object.kind) {
            (Some(file), _) if mode.has(PutMode::STAT) || mode.has(PutMode::CREATE) => sync(&**file)?,
            (Some(file), _) => uninterrupted(|| rustix::fs::fdatasync(&**file))?,
            (None, Kind::File | Kind::Directory) => sync(&*subject.object.open(Access::READ)?)?,
            (None, Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice) => {
                self.sync_all()?;
            }
        }
        match subject.directory() {
            // A new object is stable when its name is.
            Some(dir) => sync(&*dir.open(Access::READ)?),
            None => Ok(()),
        }
    }

    /// Keeps or closes the file, and removes the name where that is asked.
    fn settle(
        &self,
        mode: PutMode,
        subject: &Subject,
        file: Option<&Arc<OpenFile>>,
        stat: &Stat,
    ) -> Result<Fd, Failure> {
        let removal = match &subject.place {
            Where::Named(entry) | Where::Entry(entry) if mode.has(PutMode::REMOVE) => Some(RemoveOnClose {
                dir: entry.dir.as_fd().try_clone_to_owned().map_err(|_| Errno::TooManyOpen)?,
                name: entry.name.clone(),
                id: subject.object.id,
            }),
            Where::Anywhere | Where::Named(_) | Where::Entry(_) | Where::Nameless(_) => None,
        };
        let object = &subject.object;
        let fd = match file {
            Some(file) if mode.has(PutMode::MORE) => self.keep(object, file),
            Some(_) | None => NOFD,
        };
        let is_needed = mode.has(PutMode::READ) || mode.has(PutMode::WRITE);
        if fd == NOFD && mode.has(PutMode::MORE) && is_needed && stat.nlink == 0 {
            return Err(Errno::TooManyOpen.into());
        }
        match removal {
            Some(removal) if fd == NOFD => self.remove_closed(&removal),
            Some(removal) => self.files.remove_on_close(fd, removal),
            None => {}
        }
        if let (Some(kept), NOFD) = (object.fd, fd) {
            self.close(kept, object.id);
        }
        Ok(fd)
    }
}

impl Subject {
    /// The directory that something was created in.
    fn directory(&self) -> Option<&Object> {
        match &self.place {
            Where::Anywhere | Where::Named(_) => None,
            Where::Entry(entry) => Some(&entry.dir),
            Where::Nameless(dir) => Some(dir),
        }
    }
}

/// Whether a Tput of this mode changes anything.
fn is_change(mode: PutMode) -> bool {
    let changes = [
        PutMode::DATA,
        PutMode::STAT,
        PutMode::CREATE,
        PutMode::REMOVE,
        PutMode::WRITE,
        PutMode::KILL_PRIVILEGES,
    ];
    changes.into_iter().any(|change| mode.has(change))
}
