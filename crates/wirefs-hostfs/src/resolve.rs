//! From what a request names to a descriptor of the very object it means, beneath the session's root and nowhere else.

use crate::attributes::{self, Device, proc_path};
use crate::failure::{Failure, errno, uninterrupted};
use crate::open_files::{Access, OpenFile};
use crate::promise::Noticed;
use crate::session::Session;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, Statx};
use std::ffi::{CStr, CString};
use std::sync::Arc;
use wirefs_op::message::target::{Fd, NOFD, Place, Target};
use wirefs_op::{Errno, FileId, Kind, Stat, TreePath};
use wirefs_server::Touched;

/// The longest path that one system call takes (`PATH_MAX` without its NUL), in bytes.
const STEP_BYTES_MAX: usize = 4095;
/// How often a walk is tried again when the kernel says that a rename disturbed it.
const TRIES_MAX: usize = 64;

/// What keeps an object from changing under its name.
#[derive(Debug)]
enum Holder {
    /// Opened by path, good for naming only.
    Path(OwnedFd),
    /// The session's root.
    Root(Arc<OwnedFd>),
    /// Open already.
    Open(Arc<OpenFile>),
}

/// The object that a request means.
#[derive(Debug)]
pub(crate) struct Object {
    holder: Holder,
    pub(crate) id: FileId,
    pub(crate) kind: Kind,
    /// The session's number for it, where it is kept open.
    pub(crate) fd: Option<Fd>,
    /// By what its changes are noticed.
    pub(crate) noticed: Noticed,
    /// The directory that it was found in, where that is what has to be watched.
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
    fn new(holder: Holder, statx: &Statx, home: Device, noticed: Noticed) -> Object {
        let (id, kind) = (attributes::file_id(statx, home), attributes::kind(statx));
        Object { holder, id, kind, fd: None, noticed, parent: None }
    }

    /// An object that is open, not kept yet.
    pub(crate) fn of_open(file: Arc<OpenFile>, noticed: Noticed) -> Object {
        let (id, kind) = (file.id, file.kind);
        Object { holder: Holder::Open(file), id, kind, fd: None, noticed, parent: None }
    }

    /// The same object, its changes noticed so.
    pub(crate) fn noticed_by(self, noticed: Noticed) -> Object {
        Object { noticed, ..self }
    }

    /// The same object through this open file.
    pub(crate) fn seen_through(&self, file: Arc<OpenFile>) -> Object {
        Object { parent: self.parent.clone(), ..Object::of_open(file, self.noticed) }
    }

    /// The kept or just opened file, where there is one that covers `wanted`.
    pub(crate) fn opened(&self, wanted: Access) -> Option<&Arc<OpenFile>> {
        match &self.holder {
            Holder::Open(file) if file.access.covers(wanted) => Some(file),
            Holder::Open(_) | Holder::Path(_) | Holder::Root(_) => None,
        }
    }

    /// Whether it is this open file that holds the object.
    pub(crate) fn is_held_by(&self, file: &Arc<OpenFile>) -> bool {
        matches!(&self.holder, Holder::Open(held) if Arc::ptr_eq(held, file))
    }

    /// What the open file is good for already.
    pub(crate) fn access(&self) -> Access {
        match &self.holder {
            Holder::Open(file) => file.access,
            Holder::Path(_) | Holder::Root(_) => Access::default(),
        }
    }

    /// Opens it, or shares what is open. Only files and directories open: opening a pipe or a device does things.
    ///
    /// # Errors
    /// `EISDIR`: a directory for writing; `ELOOP`, `ENXIO`: not to be opened; else as the system says.
    pub(crate) fn open(&self, wanted: Access) -> Result<Arc<OpenFile>, Errno> {
        match self.opened(wanted) {
            Some(file) => Ok(Arc::clone(file)),
            None => self.reopen(wanted),
        }
    }

    /// Opens it anew, whether or not it still has a name.
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
        // Clients list and read ahead of programs, and again what they forgot; an access time that was set is not to go
        // by that.
        let quietly = how | OFlags::NOATIME;
        let fd = match uninterrupted(|| rustix::fs::open(&path, quietly, Mode::empty())) {
            // Only the owner may read without a trace.
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
    /// That what the name means is about to change.
    pub(crate) fn touched(&self) -> Touched {
        Touched::name(self.dir.id, self.name.to_bytes())
    }
}

/// What was expected somewhere is not there: stale when the client said what it expected.
fn or_stale(error: Errno, expected: Option<FileId>) -> Errno {
    let is_gone = matches!(error, Errno::NotFound | Errno::NotDirectory);
    if is_gone && expected.is_some() { Errno::Stale } else { error }
}

impl Session {
    /// The object that `target` means: by its fd where that is this object, else by its path, where it must be.
    ///
    /// # Errors
    /// `ESTALE`: another object is there, or none; else as for a walk.
    ///
    /// # Cost
    /// No system call with a good fd; else two.
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

    /// The attributes of what is at the target's path, without opening it; `None` where that does not do.
    ///
    /// # Errors
    /// As for `locate`.
    ///
    /// # Cost
    /// Two system calls in the root, else four.
    pub(crate) fn stat_path(&self, target: &Target) -> Result<Option<Stat>, Errno> {
        // Without an id only a look at the object tells whether it is the one that the fd stands for.
        let may_be_kept = match target.id {
            Some(id) => self.files.find(target.fd, id).is_some(),
            None => target.fd != NOFD,
        };
        let Some((dir, name)) = target.path.split_last().filter(|_| !may_be_kept) else {
            return Ok(None);
        };
        // By name alone, a place where something is mounted would be crossed; and the directory is to be watched.
        if !self.export.options.cross_mounts || self.export.promises.watches_directories() {
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
        let noticed = self.export.promises.of_object();
        Some(Object { fd: Some(fd), ..Object::of_open(file, noticed) })
    }

    /// The directory of `place` and the name in it.
    ///
    /// # Errors
    /// `ESTALE`: another directory is there, or none; `EBUSY` for the root, which is no entry.
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
        match path.split_last().filter(|_| self.export.promises.watches_directories()) {
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
        Ok(Object::new(holder, &statx, self.export.home, self.export.promises.of_object()))
    }

    /// The object of this name in a directory that is held.
    pub(crate) fn child(&self, entry: &Entry) -> Result<Object, Errno> {
        self.child_of(entry.dir.as_fd(), &entry.name)
    }

    /// The same for a directory that is open.
    pub(crate) fn child_of(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<Object, Errno> {
        let resolve = resolve_flags(self.export.options.cross_mounts);
        let fd = open_step(dir, name.to_bytes(), OFlags::NOFOLLOW, resolve)?;
        let statx = attributes::statx(fd.as_fd(), c"").map_err(errno)?;
        Ok(Object::new(Holder::Path(fd), &statx, self.export.home, self.export.promises.of_object()))
    }

    /// The object that has this name at the moment, if one does, about to have it no longer.
    pub(crate) fn look(&self, entry: &Entry) -> Option<Touched> {
        let statx = attributes::statx(entry.dir.as_fd(), &entry.name).ok()?;
        let id = attributes::file_id(&statx, self.export.home);
        let has_others = attributes::kind(&statx) != Kind::Directory && statx.stx_nlink > 1;
        Some(if has_others { Touched::with_other_names(id) } else { Touched::object(id) })
    }

    /// The attributes of what has this name in a directory that is held.
    ///
    /// # Cost
    /// Two system calls; four where mounts below are not to be crossed, which by name alone they would be.
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

/// Opens what is at `path`, for naming only, without leaving `root` and without following any link; a link at the end
/// is itself opened.
pub(crate) fn beneath(root: BorrowedFd<'_>, path: &TreePath, cross_mounts: bool) -> Result<OwnedFd, Errno> {
    let resolve = resolve_flags(cross_mounts);
    let mut rest = path.as_bytes();
    let mut reached: Option<OwnedFd> = None;
    while rest.len() > STEP_BYTES_MAX {
        // A name is shorter than a step, so each step has a slash.
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
            // A link in the middle: the client resolves links, so it took that for a directory.
            Err(rustix::io::Errno::LOOP) => return Err(Errno::NotDirectory),
            opened => return opened.map_err(errno),
        }
    }
    Err(Errno::WouldBlock)
}
