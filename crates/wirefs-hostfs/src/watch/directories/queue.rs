//! The kernel's event queue for single directories.
//!
//! fanotify needs no root rights for that (Linux 5.13), and marks own changes with the process id. Events of other
//! processes have none, and events of different processes are never merged. inotify does not distinguish processes.

use crate::attributes::proc_path;
use crate::failure::uninterrupted;
use crate::sys;
use crate::watch::events::{self, Handle};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use wirefs_op::Kind;

/// As for whole file systems: no permission events, objects by handle, names with the handle of their directory.
/// With the handle of the removed object (Linux 5.17), so that the removal of a watched directory can be
/// recognized.
const MARKS: u32 = libc::FAN_CLASS_NOTIF
    | libc::FAN_CLOEXEC
    | libc::FAN_NONBLOCK
    | libc::FAN_REPORT_FID
    | libc::FAN_REPORT_DFID_NAME
    | libc::FAN_REPORT_TARGET_FID;

/// A queue of one of two kinds.
#[derive(Debug)]
pub(super) enum Queue {
    /// fanotify, with marks on single objects. Watches are identified by handles.
    Marks(OwnedFd),
    /// inotify. Watches are identified by the kernel's numbers.
    Inotify(OwnedFd),
}

impl Queue {
    /// Creates a queue. `entry`: an open descriptor of the exported directory. `excludes_own`: prefer fanotify, if
    /// it is available. `None`: the user's limit is reached.
    pub(super) fn open(entry: BorrowedFd<'_>, excludes_own: bool) -> Option<Queue> {
        let marks = Some(entry).filter(|_| excludes_own).and_then(Queue::open_marks);
        marks.or_else(|| inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok().map(Queue::Inotify))
    }

    fn open_marks(entry: BorrowedFd<'_>) -> Option<Queue> {
        handle(entry).ok()?;
        let queue = Queue::Marks(sys::fanotify_init(MARKS).ok()?);
        // A file system may have handles that events cannot carry.
        let path = proc_path(entry);
        queue.add(&path, Kind::Directory).ok()?;
        queue.remove(&path, Kind::Directory, 0);
        Some(queue)
    }

    pub(super) fn excludes_own(&self) -> bool {
        matches!(self, Queue::Marks(_))
    }

    /// Watches the object at a path. Returns the kernel's number of the watch, if there is one.
    ///
    /// # Errors
    /// `NOSPC`: the user's limit is reached.
    pub(super) fn add(&self, path: &Path, kind: Kind) -> Result<Option<i32>, Errno> {
        match self {
            Queue::Marks(queue) => {
                let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
                let mask = marked(kind);
                uninterrupted(|| sys::fanotify_mark_path(queue.as_fd(), libc::FAN_MARK_ADD, mask, &path))?;
                Ok(None)
            }
            Queue::Inotify(queue) => {
                uninterrupted(|| inotify::add_watch(queue, path, watched(kind))).map(Some)
            }
        }
    }

    /// Ends a watch. It fails if the kernel ended it before, because the file system is gone.
    pub(super) fn remove(&self, path: &Path, kind: Kind, number: i32) {
        match self {
            Queue::Marks(queue) => {
                if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
                    let remove = libc::FAN_MARK_REMOVE;
                    let _ = sys::fanotify_mark_path(queue.as_fd(), remove, marked(kind), &path);
                }
            }
            Queue::Inotify(queue) => {
                let _ = inotify::remove_watch(queue, number);
            }
        }
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Queue::Marks(queue) | Queue::Inotify(queue) => queue.as_fd(),
        }
    }
}

/// The object's handle as in events.
pub(super) fn handle(object: BorrowedFd<'_>) -> Result<Handle, Errno> {
    let fsid = rustix::fs::fstatvfs(object)?.f_fsid;
    let (kind, bytes) = sys::name_to_handle(object)?;
    Ok(Handle { fsid, kind, bytes: bytes.into() })
}

/// The fanotify events to request for an object. Reads and opens are left out: they change only the access time.
/// Closes are included: a program that wrote through a mapping often closes the file afterwards.
fn marked(kind: Kind) -> u64 {
    match kind {
        Kind::Directory => events::NAMES | events::OBJECTS | libc::FAN_ONDIR | libc::FAN_EVENT_ON_CHILD,
        Kind::File | Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
            events::OBJECTS
        }
    }
}

/// The same for inotify.
fn watched(kind: Kind) -> WatchFlags {
    let itself = WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::ATTRIB
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF;
    match kind {
        Kind::Directory => {
            let names = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
            itself | names | WatchFlags::ONLYDIR
        }
        Kind::File | Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => {
            itself
        }
    }
}
