//! Creates objects on behalf of callers.

use super::{Location, Subject, changes_object, set};
use crate::attributes;
use crate::failure::{Failure, errno, uninterrupted};
use crate::identity::Acting;
use crate::open_files::{Access, OpenFile};
use crate::resolve::{Entry, Object};
use crate::session::Session;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno as SystemErrno;
use wirefs_op::message::put::{Create, PutMode, Tput};
use wirefs_op::message::target::Place;
use wirefs_op::{Errno, Kind};
use wirefs_server::{PriorState, Replies};

/// Attempts to open or create a file that is concurrently created and removed.
const TRIES_MAX: usize = 64;

impl Session {
    /// Creates the object, or finds the existing regular file.
    pub(super) fn create(&self, request: &Tput, replies: &mut dyn Replies) -> Result<Subject<'_>, Failure> {
        let create = request.create.as_ref().ok_or(Errno::Invalid)?;
        if request.mode.has(PutMode::NAMELESS) {
            return self.create_nameless(request, create);
        }
        if request.target.path.is_root() {
            return Err(Errno::Exists.into());
        }
        let entry = self.entry(&Place { path: request.target.path.clone(), dir: request.target.id })?;
        self.check_device(create.kind)?;
        replies.touch(&[entry.touched()])?;
        replies.record_prior_state(&mut || self.look(&entry).is_none().then(PriorState::default));
        let guard = self.lock_names([entry.dir.id; 2]);
        // Until the object's id is known, its changes cannot be touched, so it must not be leased.
        let pending_creation =
            changes_object(request, create.kind).then(|| self.export.detection.pending_creations.begin());
        let dir_before = self.version_of(&entry.dir);
        let (object, is_new) = match create.kind {
            Kind::File => self.create_file(&entry, create, request.mode.has(PutMode::EXCLUSIVE))?,
            Kind::Directory
            | Kind::Symlink
            | Kind::Fifo
            | Kind::Socket
            | Kind::CharDevice
            | Kind::BlockDevice => {
                self.create_other(&entry, create, &request.data.0)?;
                (self.child(&entry)?, true)
            }
        };
        let dir_after = self.version_of(&entry.dir);
        drop(guard);
        if is_new && request.mode.has(PutMode::EXCLUSIVE) {
            self.settle_lock_name(&entry.name);
        }
        let object = self.covered_in(&entry.dir, object, replies);
        let pending_creation = pending_creation.filter(|_| is_new);
        Ok(Subject { object, place: Location::Entry(entry), is_new, pending_creation, dir_before, dir_after })
    }

    /// The file, and whether it is new.
    fn create_file(
        &self,
        entry: &Entry,
        create: &Create,
        exclusive: bool,
    ) -> Result<(Object, bool), Failure> {
        let how = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        for _ in 0..TRIES_MAX {
            let acting = Acting::begin(&create.cred, self.export.acts_for_callers)?;
            let created = uninterrupted(|| {
                rustix::fs::openat(&entry.dir, &entry.name, how, self.creation_mode(create))
            });
            drop(acting);
            match created {
                Ok(fd) => return Ok((self.created(fd)?, true)),
                Err(SystemErrno::EXIST) if !exclusive => match self.child(entry) {
                    Ok(object) if object.kind == Kind::File => return Ok((object, false)),
                    Ok(_) => return Err(Errno::Exists.into()),
                    // Removed meanwhile.
                    Err(Errno::NotFound) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::WouldBlock.into())
    }

    fn create_nameless(&self, request: &Tput, create: &Create) -> Result<Subject<'_>, Failure> {
        if create.kind != Kind::File {
            return Err(Errno::Invalid.into());
        }
        let dir = self.directory(&request.target.path, request.target.id)?;
        let how = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let acting = Acting::begin(&create.cred, self.export.acts_for_callers)?;
        let fd = uninterrupted(|| rustix::fs::openat(&dir, c".", how, self.creation_mode(create)));
        drop(acting);
        let object = self.created(fd?)?;
        Ok(Subject {
            object,
            place: Location::Nameless(dir),
            is_new: true,
            pending_creation: None,
            dir_before: None,
            dir_after: None,
        })
    }

    /// The permission bits of a new object.
    fn creation_mode(&self, create: &Create) -> Mode {
        let is_limited = create.kind == Kind::File && !self.export.options.allows_set_id;
        let refused = if is_limited { set::SET_ID } else { 0 };
        Mode::from_raw_mode(create.mode & 0o7777 & !refused)
    }

    /// # Errors
    /// `EPERM`: the object would be a device, and clients may create none.
    fn check_device(&self, kind: Kind) -> Result<(), Errno> {
        let is_device = matches!(kind, Kind::CharDevice | Kind::BlockDevice);
        if is_device && !self.export.options.allows_devices { Err(Errno::NotPermitted) } else { Ok(()) }
    }

    fn created(&self, fd: OwnedFd) -> Result<Object, Failure> {
        // As in `Object::reopen`. A file system without this flag only loses the feature.
        let _ = rustix::fs::fcntl_setfl(&fd, rustix::fs::OFlags::NOATIME);
        let statx = attributes::statx(fd.as_fd(), c"")?;
        let id = attributes::file_id(&statx, self.export.home);
        let access = Access::READ.union(Access::WRITE);
        let coverage = self.export.detection.object_coverage();
        Ok(Object::of_open(OpenFile::new(fd, id, Kind::File, access), coverage))
    }

    fn create_other(&self, entry: &Entry, create: &Create, target: &[u8]) -> Result<(), Failure> {
        let (dir, name) = (&entry.dir, &entry.name);
        let node = |file_type| {
            rustix::fs::mknodat(dir, name, file_type, self.creation_mode(create), create.rdev.into())
        };
        let _acting = Acting::begin(&create.cred, self.export.acts_for_callers)?;
        let made = uninterrupted(|| match create.kind {
            Kind::File => node(FileType::RegularFile),
            Kind::Directory => rustix::fs::mkdirat(dir, name, self.creation_mode(create)),
            Kind::Symlink => rustix::fs::symlinkat(target, dir, name),
            Kind::Fifo => node(FileType::Fifo),
            Kind::Socket => node(FileType::Socket),
            Kind::CharDevice => node(FileType::CharacterDevice),
            Kind::BlockDevice => node(FileType::BlockDevice),
        });
        Ok(made.map_err(errno)?)
    }
}
