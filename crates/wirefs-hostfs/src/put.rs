//! Tput: creates, opens, changes attributes and writes in one request.

mod create;
mod set;
mod stream;
mod write;

pub(crate) use set::set_mode;
pub(crate) use stream::Stream;

use crate::attributes;
use crate::commit::sync;
use crate::detection::PendingCreation;
use crate::failure::{Failure, uninterrupted};
use crate::open_files::{Access, OpenFile, RemoveOnClose};
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

/// The object of a Tput.
struct Subject<'a> {
    object: Object,
    place: Location,
    /// Whether this request created it.
    is_new: bool,
    /// Set while the object's id is unknown to the server core.
    pending_creation: Option<PendingCreation<'a>>,
    /// The version of the directory before the creation.
    dir_before: Option<u64>,
    /// The version of the directory right after the creation.
    dir_after: Option<u64>,
}

/// The name of the object, as far as the request needs it.
enum Location {
    /// An existing object; its name is not needed.
    Anywhere,
    /// An existing object whose name is to be removed.
    Named(Entry),
    /// CREATE with this name.
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
        let coverage = self.cover(object, replies);
        let guard = self.export.changes.lock_contents(object.id);
        let before = match subject.is_new {
            true => 0,
            false => {
                let statx = attributes::statx(object.as_fd(), c"")?;
                if mode.has(PutMode::APPEND) && mode.has(PutMode::DATA) {
                    let found = PriorState { named: Some(object.id), object: None, size: statx.stx_size };
                    replies.record_prior_state(&mut || Some(found));
                }
                attributes::version(&statx, self.export.home)
            }
        };
        if mode.has(PutMode::KILL_PRIVILEGES) && object.kind == Kind::File && !subject.is_new {
            self.kill_privileges(object, mode.has(PutMode::STAT) && request.set.mode.is_some())?;
        }
        if !subject.is_new && changes_contents(request) {
            self.defuse(object)?;
        }
        if mode.has(PutMode::STAT) {
            // Truncation clears the set-group-id bit if the server's user may not keep it, and a new file is empty
            // anyway.
            let size = request.set.size.filter(|size| !subject.is_new || *size > 0);
            set::apply(
                object,
                file.as_deref(),
                &SetStat { size, ..request.set },
                self.export.options.allows_set_id,
            )?;
        }
        let is_write = mode.has(PutMode::DATA) && object.kind != Kind::Symlink;
        let written = match &file {
            Some(file) if is_write => write::write(file, request)?,
            Some(_) | None => Written::nothing(request.offset),
        };
        let mut stat = self.stat(object)?;
        drop(guard);
        self.lease(coverage, replies, &mut once(&mut stat));
        let found = (!subject.is_new).then_some(before);
        self.report_change(&Touched::object(object.id), found, Some(stat.version), replies);
        if let Some(file) = file.as_ref().filter(|_| written.count > 0) {
            file.stream.written(file, written.offset, written.count);
        }
        let fd = self.finish(mode, &subject, file.as_ref(), &stat, replies)?;
        let dir = subject.directory().and_then(|dir| self.stat_leased(dir, replies).ok());
        if let (Location::Entry(entry), true) = (&subject.place, subject.is_new) {
            self.report_change(&entry.touched(), subject.dir_before, subject.dir_after, replies);
        }
        if mode.has(PutMode::SYNC) {
            // Everything is done; the next change need not wait for the disk.
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
            Location::Named(self.entry(&Place { path, dir: None })?)
        } else {
            Location::Anywhere
        };
        Ok(Subject {
            object,
            place,
            is_new: false,
            pending_creation: None,
            dir_before: None,
            dir_after: None,
        })
    }

    /// States the objects that are about to be changed, except for the names that a creation has touched already.
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
            // No client has a lease on it, so no recall is needed.
            let _ = replies.touch(&touched);
            subject.pending_creation = None;
            return Ok(());
        }
        if let (Some(fd), false) = (object.fd, mode.has(PutMode::MORE)) {
            touched.extend(self.files.touched_by_closing(fd, object.id, self.export.home));
        }
        // The name of a kept file stays until the file is closed.
        let removes_now = mode.has(PutMode::REMOVE) && !(mode.has(PutMode::MORE) && is_open);
        if let (true, Location::Named(entry) | Location::Entry(entry)) = (removes_now, &subject.place)
            && object.kind != Kind::Directory
            && self.look(entry).is_some_and(|found| found.id == object.id)
        {
            touched.extend([entry.touched(), Touched::with_other_names(object.id)]);
        }
        replies.touch(&touched)?;
        if let (true, Location::Named(_)) = (removes_now, &subject.place) {
            replies.record_prior_state(&mut || {
                Some(PriorState { named: Some(object.id), ..PriorState::default() })
            });
        }
        Ok(())
    }

    /// Opens the object with all access that the request needs; `None` if it needs none.
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
            // The data of a new symlink is its target.
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
            // A new object is stable only together with its name.
            Some(dir) => sync(&*dir.open(Access::READ)?),
            None => Ok(()),
        }
    }

    /// Keeps or closes the file, and removes the name if requested.
    fn finish(
        &self,
        mode: PutMode,
        subject: &Subject<'_>,
        file: Option<&Arc<OpenFile>>,
        stat: &Stat,
        replies: &mut dyn Replies,
    ) -> Result<Fd, Failure> {
        let removal = match &subject.place {
            Location::Named(entry) | Location::Entry(entry) if mode.has(PutMode::REMOVE) => {
                Some(RemoveOnClose {
                    dir: entry.dir.as_fd().try_clone_to_owned().map_err(|_| Errno::TooManyOpen)?,
                    dir_id: entry.dir.id,
                    name: entry.name.clone(),
                    id: subject.object.id,
                })
            }
            Location::Anywhere | Location::Named(_) | Location::Entry(_) | Location::Nameless(_) => None,
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
                // Touched before, unless the file should have been kept and there was no room. Then leases are
                // recalled during the removal.
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
    /// The directory of a created object.
    fn directory(&self) -> Option<&Object> {
        match &self.place {
            Location::Anywhere | Location::Named(_) => None,
            Location::Entry(entry) => Some(&entry.dir),
            Location::Nameless(dir) => Some(dir),
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

/// Whether a Tput may change the contents of a file.
fn changes_contents(request: &Tput) -> bool {
    request.mode.has(PutMode::DATA) || (request.mode.has(PutMode::STAT) && request.set.size.is_some())
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
