//! Tput: creates, opens, changes attributes and writes in one request.

mod create;
mod set;
mod stream;
mod write;

pub(crate) use set::set_mode;
pub(crate) use stream::Stream;

use crate::attributes;
use crate::commit::sync;
use crate::failure::{Failure, uninterrupted};
use crate::open_files::{Access, OpenFile, RemoveOnClose};
use crate::promise::Birth;
use crate::resolve::{Entry, Object};
use crate::session::Session;
use rustix::fd::AsFd;
use std::iter::once;
use std::sync::Arc;
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::{Fd, NOFD, Place};
use wirefs_op::{Errno, Kind, SetStat, Stat};
use wirefs_server::{PriorState, Replies, Touched};
use write::Written;

/// The object that a Tput works on.
struct Subject<'a> {
    object: Object,
    place: Where,
    /// Created by this request.
    is_new: bool,
    /// It is about to be changed, and nobody but this request knows yet which it is.
    birth: Option<Birth<'a>>,
    /// The version of the directory before something was made in it.
    dir_before: Option<u64>,
    /// And right after it.
    dir_after: Option<u64>,
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
        let mut subject = self.subject(request, replies)?;
        let file = self.open_for(request, &subject.object)?;
        self.touch_subject(request, &mut subject, file.is_some(), replies)?;
        let object = &subject.object;
        let noticed = self.notice(object, replies);
        let turn = self.export.changes.turn(object.id);
        let before = match subject.is_new {
            true => 0,
            false => {
                let statx = attributes::statx(object.as_fd(), c"")?;
                if mode.has(PutMode::APPEND) && mode.has(PutMode::DATA) {
                    let found = PriorState { named: Some(object.id), object: None, size: statx.stx_size };
                    replies.record_prior_state(&mut || Some(found));
                }
                attributes::version(&statx)
            }
        };
        if mode.has(PutMode::KILL_PRIVILEGES) && object.kind == Kind::File && !subject.is_new {
            self.kill_privileges(object, mode.has(PutMode::STAT) && request.set.mode.is_some())?;
        }
        if mode.has(PutMode::STAT) {
            // To cut a file takes its set-group-id bit away where the server's user may not keep it, and a new one is empty.
            let size = request.set.size.filter(|size| !subject.is_new || *size > 0);
            set::apply(object, file.as_deref(), &SetStat { size, ..request.set })?;
        }
        let is_write = mode.has(PutMode::DATA) && object.kind != Kind::Symlink;
        let written = match &file {
            Some(file) if is_write => write::write(file, request)?,
            Some(_) | None => Written::nothing(request.offset),
        };
        let mut stat = self.stat(object)?;
        drop(turn);
        self.promise(noticed, replies, &mut once(&mut stat));
        let found = (!subject.is_new).then_some(before);
        self.has_changed(&Touched::object(object.id), found, Some(stat.version), replies);
        if let Some(file) = file.as_ref().filter(|_| written.count > 0) {
            file.stream.wrote(file, written.offset, written.count);
        }
        let fd = self.settle(mode, &subject, file.as_ref(), &stat, replies)?;
        let dir = subject.directory().and_then(|dir| self.stat_promised(dir, replies).ok());
        if let (Where::Entry(entry), true) = (&subject.place, subject.is_new) {
            self.has_changed(&entry.touched(), subject.dir_before, subject.dir_after, replies);
        }
        if mode.has(PutMode::SYNC) {
            // All is done; the next change need not wait for the disk.
            replies.release_slot();
            self.sync_put(mode, &subject, file.as_ref())?;
        }
        Ok(Rput { fd, count: written.count, offset: written.offset, before, stat: Some(stat), dir })
    }

    fn subject(&self, request: &Tput, replies: &mut dyn Replies) -> Result<Subject<'_>, Failure> {
        if request.mode.has(PutMode::CREATE) {
            return self.create(request, replies);
        }
        let object = self.locate(&request.target)?;
        let place = if request.mode.has(PutMode::REMOVE) {
            let path = request.target.path.clone();
            Where::Named(self.entry(&Place { path, dir: None })?)
        } else {
            Where::Anywhere
        };
        Ok(Subject { object, place, is_new: false, birth: None, dir_before: None, dir_after: None })
    }

    /// Says what is about to be changed, beside the names that a creation has touched already.
    fn touch_subject(
        &self,
        request: &Tput,
        subject: &mut Subject<'_>,
        is_open: bool,
        replies: &mut dyn Replies,
    ) -> Result<(), Failure> {
        let (mode, object) = (request.mode, &subject.object);
        let mut touched = Vec::new();
        if changes_object(request, object.kind) {
            touched.push(Touched::object(object.id));
        }
        if subject.is_new {
            // Nobody was promised anything about it, so nobody has to be waited for.
            let _ = replies.touch(&touched);
            subject.birth = None;
            return Ok(());
        }
        if let (Some(fd), false) = (object.fd, mode.has(PutMode::MORE)) {
            touched.extend(self.files.touched_by_closing(fd, object.id, self.export.home));
        }
        // What is kept open keeps its name until it is closed.
        let removes_now = mode.has(PutMode::REMOVE) && !(mode.has(PutMode::MORE) && is_open);
        if let (true, Where::Named(entry) | Where::Entry(entry)) = (removes_now, &subject.place)
            && object.kind != Kind::Directory
            && self.look(entry).is_some_and(|found| found.id == object.id)
        {
            touched.extend([entry.touched(), Touched::with_other_names(object.id)]);
        }
        replies.touch(&touched)?;
        if let (true, Where::Named(_)) = (removes_now, &subject.place) {
            replies.record_prior_state(&mut || {
                Some(PriorState { named: Some(object.id), ..PriorState::default() })
            });
        }
        Ok(())
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
        subject: &Subject<'_>,
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
        subject: &Subject<'_>,
        file: Option<&Arc<OpenFile>>,
        stat: &Stat,
        replies: &mut dyn Replies,
    ) -> Result<Fd, Failure> {
        let removal = match &subject.place {
            Where::Named(entry) | Where::Entry(entry) if mode.has(PutMode::REMOVE) => Some(RemoveOnClose {
                dir: entry.dir.as_fd().try_clone_to_owned().map_err(|_| Errno::TooManyOpen)?,
                dir_id: entry.dir.id,
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
            Some(removal) if fd == NOFD => {
                // Known already but for a file that should have been kept and is not, for want of room: then others hear of
                // it while it happens.
                let _ = replies.touch(&removal.touched(self.export.home));
                self.remove_touched(&removal, replies);
            }
            Some(removal) => self.files.remove_on_close(fd, removal),
            None => {}
        }
        if let (Some(kept), NOFD) = (object.fd, fd) {
            self.close(kept, object.id, replies);
        }
        Ok(fd)
    }
}

impl Subject<'_> {
    /// The directory that something was created in.
    fn directory(&self) -> Option<&Object> {
        match &self.place {
            Where::Anywhere | Where::Named(_) => None,
            Where::Entry(entry) => Some(&entry.dir),
            Where::Nameless(dir) => Some(dir),
        }
    }
}

/// Whether a Tput changes the object itself, which is of this kind.
fn changes_object(request: &Tput, kind: Kind) -> bool {
    let mode = request.mode;
    let is_file = kind == Kind::File;
    (mode.has(PutMode::DATA) && is_file && !request.data.0.is_empty())
        || (mode.has(PutMode::STAT) && request.set != SetStat::default())
        || (mode.has(PutMode::KILL_PRIVILEGES) && is_file)
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
