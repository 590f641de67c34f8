//! Resolves the target of a request to a descriptor of that object, beneath the session's root.

use crate::attributes::{self, Home, proc_path};
use crate::detection::Coverage;
use crate::failure::{Failure, errno, uninterrupted};
use crate::open_files::{Access, OpenFile};
use crate::session::Session;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, Statx};
use std::ffi::{CStr, CString};
use std::sync::Arc;
use wirefs_op::message::target::{Fd, NOFD, Place, Target};
use wirefs_op::{Errno, FileId, Kind, Stat, TreePath};
use wirefs_server::Touched;

/// The longest path in one system call (`PATH_MAX` without its NUL), in bytes.
const STEP_BYTES_MAX: usize = 4095;
/// Attempts of a walk that the kernel refuses because of a concurrent rename.
const TRIES_MAX: usize = 64;

/// The descriptor that holds an object, whatever happens to its name.
#[derive(Debug)]
enum Holder {
    /// An `O_PATH` descriptor.
    Path(OwnedFd),
    /// The session's root.
    Root(Arc<OwnedFd>),
    /// An open file.
    Open(Arc<OpenFile>),
}

/// The object that a request refers to.
#[derive(Debug)]
pub(crate) struct Object {
    holder: Holder,
    pub(crate) id: FileId,
    pub(crate) kind: Kind,
    /// The session's fd for it, if it is kept open.
    pub(crate) fd: Option<Fd>,
    /// The watch that covers it.
    pub(crate) coverage: Coverage,
    /// The directory in which it was found, if that needs the watch.
    pub(crate) parent: Option<Arc<Object>>,
}

impl AsFd for Object {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.holder {
            Holder::Path(fd) => fd.as_fd(),
            Holder::Root(fd) => fd.as_fd(),
            Holder::Open(file) => file.as_fd(),
        }
    }
}

impl Object {
    fn new(holder: Holder, statx: &Statx, home: Home, coverage: Coverage) -> Object {
        let (id, kind) = (attributes::file_id(statx, home), attributes::kind(statx));
        Object { holder, id, kind, fd: None, coverage, parent: None }
    }

    /// An object that is open, but not kept yet.
    pub(crate) fn of_open(file: Arc<OpenFile>, coverage: Coverage) -> Object {
        let (id, kind) = (file.id, file.kind);
        Object { holder: Holder::Open(file), id, kind, fd: None, coverage, parent: None }
    }

    /// The same object with this coverage.
    pub(crate) fn with_coverage(self, coverage: Coverage) -> Object {
        Object { coverage, ..self }
    }

    /// The same object held by this open file.
    pub(crate) fn seen_through(&self, file: Arc<OpenFile>) -> Object {
        Object { parent: self.parent.clone(), ..Object::of_open(file, self.coverage) }
    }

    /// The open file, if there is one with the `wanted` access.
    pub(crate) fn opened(&self, wanted: Access) -> Option<&Arc<OpenFile>> {
        match &self.holder {
            Holder::Open(file) if file.access.covers(wanted) => Some(file),
            Holder::Open(_) | Holder::Path(_) | Holder::Root(_) => None,
        }
    }

    /// Whether this open file holds the object.
    pub(crate) fn is_held_by(&self, file: &Arc<OpenFile>) -> bool {
        matches!(&self.holder, Holder::Open(held) if Arc::ptr_eq(held, file))
    }

    /// The access of the open file.
    pub(crate) fn access(&self) -> Access {
        match &self.holder {
            Holder::Open(file) => file.access,
            Holder::Path(_) | Holder::Root(_) => Access::default(),
        }
    }

    /// Opens the object, or shares the open file. Only files and directories are opened: opening a pipe or a device
    /// has side effects.
    ///
    /// # Errors
    /// `EISDIR`: a directory for writing; `ELOOP`, `ENXIO`: not to be opened; else the error of the system.
    pub(crate) fn open(&self, wanted: Access) -> Result<Arc<OpenFile>, Errno> {
        match self.opened(wanted) {
            Some(file) => Ok(Arc::clone(file)),
            None => self.reopen(wanted),
        }
    }

    /// Opens the object again, whether or not it has a name.
    pub(crate) fn reopen(&self, wanted: Access) -> Result<Arc<OpenFile>, Errno> {
        let how = match (self.kind, wanted.read, wanted.write) {
            (Kind::Directory, _, true) => return Err(Errno::IsDirectory),
            (Kind::Directory, _, false) => OFlags::RDONLY | OFlags::DIRECTORY,
            (Kind::File, true, true) => OFlags::RDWR,
            (Kind::File, false, true) => OFlags::WRONLY,
            (Kind::File, _, false) => OFlags::RDONLY,
            (Kind::Symlink, _, _) => return Err(Errno::Loop),
            (Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice, _, _) => {
                return Err(Errno::NoSuchDevice);
            }
        };
        let path = proc_path(self.as_fd());
        let how = how | OFlags::CLOEXEC | OFlags::NOCTTY;
        // Clients list and read ahead, and read evicted data again. Such reads must not replace an access time that
        // was set.
        let quietly = how | OFlags::NOATIME;
        let fd = match uninterrupted(|| rustix::fs::open(&path, quietly, Mode::empty())) {
            // Only the owner may use O_NOATIME.
            Err(rustix::io::Errno::PERM) => uninterrupted(|| rustix::fs::open(&path, how, Mode::empty())),
            opened => opened,
        };
        Ok(OpenFile::new(fd.map_err(errno)?, self.id, self.kind, wanted))
    }
}

/// A directory and a name in it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) dir: Object,
    pub(crate) name: CString,
}

impl Entry {
    /// The statement that the meaning of the name is about to change.
    pub(crate) fn touched(&self) -> Touched {
        Touched::name(self.dir.id, self.name.to_bytes())
    }
}

/// The error for a missing object: `ESTALE` if the client named the expected object.
fn or_stale(error: Errno, expected: Option<FileId>) -> Errno {
    let is_gone = matches!(error, Errno::NotFound | Errno::NotDirectory);
    if is_gone && expected.is_some() { Errno::Stale } else { error }
}

impl Session {
    /// The object of `target`: by its fd if that refers to this object, else by its path.
    ///
    /// # Errors
    /// `ESTALE`: there is another object, or none; else as for a walk.
    ///
    /// # Cost
    /// No system call with a valid fd; else two.
    pub(crate) fn locate(&self, target: &Target) -> Result<Object, Errno> {
        if let Some(object) = target.id.and_then(|id| self.kept(target.fd, id)) {
            return Ok(object);
        }
        let object = self.walk(&target.path).map_err(|error| or_stale(error, target.id))?;
        match target.id {
            Some(id) if id != object.id => Err(Errno::Stale),
            Some(_) => Ok(object),
            None => Ok(self.kept(target.fd, object.id).unwrap_or(object)),
        }
    }

    /// The attributes of the object at the target's path, without a descriptor of it; `None` if a descriptor is
    /// needed.
    ///
    /// # Errors
    /// As for `locate`.
    ///
    /// # Cost
    /// Two system calls in the root, else four.
    pub(crate) fn stat_path(&self, target: &Target) -> Result<Option<Stat>, Errno> {
        // Without an id, only the object's attributes tell whether the fd refers to it.
        let may_be_kept = match target.id {
            Some(id) => self.files.find(target.fd, id).is_some(),
            None => target.fd != NOFD,
        };
        let Some((dir, name)) = target.path.split_last().filter(|_| !may_be_kept) else {
            return Ok(None);
        };
        // A lookup by name alone would cross mounts, and a watch needs a descriptor of the directory.
        if !self.export.options.cross_mounts || self.export.detection.watches_directories() {
            return Ok(None);
        }
        let name = CString::new(name).map_err(|_| Errno::Invalid)?;
        let stat_in =
            |dir: BorrowedFd<'_>| attributes::stat_name(dir, &name, self.export.home).map_err(errno);
        let stat = if dir.is_root() {
            stat_in(self.root.as_fd())
        } else {
            beneath(self.root.as_fd(), &dir, true).and_then(|dir| stat_in(dir.as_fd()))
        };
        let stat = stat.map_err(|error| or_stale(error, target.id))?;
        match target.id {
            Some(id) if id != stat.id => Err(Errno::Stale),
            Some(_) | None => Ok(Some(stat)),
        }
    }

    fn kept(&self, fd: Fd, id: FileId) -> Option<Object> {
        let file = self.files.find(fd, id)?;
        let coverage = self.export.detection.object_coverage();
        Some(Object { fd: Some(fd), ..Object::of_open(file, coverage) })
    }

    /// The directory of `place` and the name in it.
    ///
    /// # Errors
    /// `ESTALE`: there is another directory, or none; `EBUSY` for the root, which is not an entry.
    pub(crate) fn entry(&self, place: &Place) -> Result<Entry, Errno> {
        let (dir, name) = place.path.split_last().ok_or(Errno::Busy)?;
        Ok(Entry {
            dir: self.directory(&dir, place.dir)?,
            name: CString::new(name).map_err(|_| Errno::Invalid)?,
        })
    }

    /// The directory at `path`.
    ///
    /// # Errors
    /// As for `entry`.
    pub(crate) fn directory(&self, path: &TreePath, expected: Option<FileId>) -> Result<Object, Errno> {
        let dir = self.walk(path).map_err(|error| or_stale(error, expected))?;
        match expected {
            Some(id) if id != dir.id => Err(Errno::Stale),
            Some(_) | None if dir.kind != Kind::Directory => Err(or_stale(Errno::NotDirectory, expected)),
            Some(_) | None => Ok(dir),
        }
    }

    fn walk(&self, path: &TreePath) -> Result<Object, Errno> {
        match path.split_last().filter(|_| self.export.detection.watches_directories()) {
            None => self.walk_straight(path),
            Some((dir, name)) => {
                let name = CString::new(name).map_err(|_| Errno::Invalid)?;
                let entry = Entry { dir: self.walk_straight(&dir)?, name };
                let child = self.child(&entry)?;
                Ok(Object { parent: Some(Arc::new(entry.dir)), ..child })
            }
        }
    }

    fn walk_straight(&self, path: &TreePath) -> Result<Object, Errno> {
        let holder = if path.is_root() {
            Holder::Root(Arc::clone(&self.root))
        } else {
            Holder::Path(beneath(self.root.as_fd(), path, self.export.options.cross_mounts)?)
        };
        let fd = match &holder {
            Holder::Path(fd) => fd.as_fd(),
            Holder::Root(fd) => fd.as_fd(),
            Holder::Open(file) => file.as_fd(),
        };
        let statx = attributes::statx(fd, c"").map_err(errno)?;
        Ok(Object::new(holder, &statx, self.export.home, self.export.detection.object_coverage()))
    }

    /// The object with this name in a directory.
    pub(crate) fn child(&self, entry: &Entry) -> Result<Object, Errno> {
        self.child_of(entry.dir.as_fd(), &entry.name)
    }

    /// The same for an open directory.
    pub(crate) fn child_of(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<Object, Errno> {
        let resolve = resolve_flags(self.export.options.cross_mounts);
        let fd = open_step(dir, name.to_bytes(), OFlags::NOFOLLOW, resolve)?;
        let statx = attributes::statx(fd.as_fd(), c"").map_err(errno)?;
        Ok(Object::new(Holder::Path(fd), &statx, self.export.home, self.export.detection.object_coverage()))
    }

    /// The object that has this name now, as a statement that it is about to lose the name.
    pub(crate) fn look(&self, entry: &Entry) -> Option<Touched> {
        let statx = attributes::statx(entry.dir.as_fd(), &entry.name).ok()?;
        let id = attributes::file_id(&statx, self.export.home);
        let has_others = attributes::kind(&statx) != Kind::Directory && statx.stx_nlink > 1;
        Some(if has_others { Touched::with_other_names(id) } else { Touched::object(id) })
    }

    /// The attributes of the object with this name.
    ///
    /// # Cost
    /// Two system calls; four if mounts must not be crossed.
    pub(crate) fn stat_child(&self, entry: &Entry) -> Result<Stat, Errno> {
        let dir = entry.dir.as_fd();
        if self.export.options.cross_mounts {
            return attributes::stat_name(dir, &entry.name, self.export.home).map_err(errno);
        }
        let child = self.child(entry)?;
        attributes::stat_fd(&child, self.export.home).map_err(errno)
    }

    /// The object's attributes.
    pub(crate) fn stat(&self, object: impl AsFd) -> Result<Stat, Failure> {
        Ok(attributes::stat_fd(object, self.export.home)?)
    }
}

fn resolve_flags(cross_mounts: bool) -> ResolveFlags {
    let flags = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    if cross_mounts { flags } else { flags | ResolveFlags::NO_XDEV }
}

/// Opens the object at `path` with `O_PATH`, without leaving `root` and without following symlinks. A symlink at
/// the end is opened itself.
pub(crate) fn beneath(root: BorrowedFd<'_>, path: &TreePath, cross_mounts: bool) -> Result<OwnedFd, Errno> {
    let resolve = resolve_flags(cross_mounts);
    let mut rest = path.as_bytes();
    let mut reached: Option<OwnedFd> = None;
    while rest.len() > STEP_BYTES_MAX {
        // A name is shorter than a step, so each step contains a slash.
        let slash = rest.iter().take(STEP_BYTES_MAX).rposition(|byte| *byte == b'/');
        let (step, remaining) = rest.split_at(slash.ok_or(Errno::NameTooLong)?);
        let from = reached.as_ref().map_or(root, AsFd::as_fd);
        reached = Some(open_step(from, step, OFlags::DIRECTORY, resolve)?);
        rest = remaining.get(1..).unwrap_or_default();
    }
    let from = reached.as_ref().map_or(root, AsFd::as_fd);
    open_step(from, rest, OFlags::NOFOLLOW, resolve)
}

fn open_step(
    from: BorrowedFd<'_>,
    path: &[u8],
    how: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let how = how | OFlags::PATH | OFlags::CLOEXEC;
    for _ in 0..TRIES_MAX {
        match rustix::fs::openat2(from, path, how, Mode::empty(), resolve) {
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            // A symlink in the middle of the path. Clients resolve symlinks, so the client took it for a directory.
            Err(rustix::io::Errno::LOOP) => return Err(Errno::NotDirectory),
            opened => return opened.map_err(errno),
        }
    }
    Err(Errno::WouldBlock)
}
