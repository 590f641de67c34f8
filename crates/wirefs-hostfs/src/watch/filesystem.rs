//! News of whole file systems (fanotify), for root: who changed what, with nothing to be asked for in advance.

mod ignored;
mod known;
mod news;

use super::events::{self, Handle};
use super::{local, open_directory};
use crate::attributes::{self, Device};
use crate::sys;
use ignored::Ignored;
pub(crate) use ignored::IgnoredFiles;
pub(super) use news::News;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::Statx;
use rustix::io::Errno;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wirefs_op::FileId;

/// The queue: without permission events, which would hold up programs; objects by handle, so that nothing is opened for an
/// event; names with the handle of their directory.
const QUEUE: u32 = libc::FAN_CLASS_NOTIF
    | libc::FAN_CLOEXEC
    | libc::FAN_NONBLOCK
    | libc::FAN_REPORT_FID
    | libc::FAN_REPORT_DFID_NAME;

/// What is told. Reading and opening change nothing but an access time. A program that wrote through a mapping often
/// closes the file after that, which nothing else tells of.
const CHANGES: u64 = events::NAMES | events::OBJECTS | libc::FAN_ONDIR;

/// The part of it that a busy file makes again and again.
const OBJECT_ATTRIBUTES: u64 = libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE | libc::FAN_ATTRIB;

/// File systems below the export that are watched at most, beside its own.
const FILE_SYSTEMS_MAX: usize = 64;
/// Objects on each of them that are remembered as watched.
const WATCHED_MAX: usize = 1 << 16;

/// What the kernel seems to have no memory for is looked for again after so long.
const RETRY_MIN: Duration = Duration::from_micros(10);
/// The longest wait before it is looked for the last time; 10 ms in all.
const RETRY_MAX: Duration = Duration::from_micros(5120);

/// A file system that is, or was, marked.
#[derive(Debug)]
struct Marked {
    /// What the kernel calls it in events.
    fsid: u64,
    /// What ids call it; 0 is the export's own.
    number: u32,
    /// A directory of it, open, without which no handle can be understood. It keeps the file system from being unmounted;
    /// `None` where nothing on it is watched any more.
    entry: Option<Arc<OwnedFd>>,
    /// What is watched on it. Empty for the export's own, which is watched anyway.
    watched: HashSet<FileId>,
}

/// The object behind a handle.
enum Found {
    Id(FileId),
    /// No object has this handle any more, or nobody wants to know.
    Gone,
    /// The system could not tell.
    Unknown,
}

/// Marked file systems.
#[derive(Debug)]
pub(super) struct Filesystem {
    queue: OwnedFd,
    home: Device,
    /// The export's own first.
    marked: Mutex<Vec<Marked>>,
    /// How many marks were made so far. A disk that is mounted again has the handles that it had, but may have another
    /// number, and so other ids.
    marks: AtomicU64,
    ignored: Ignored,
}

impl Filesystem {
    /// Marks the file system that `entry` is on. `None`: this process may not, or the file system or the kernel cannot.
    pub(super) fn open(entry: &OwnedFd, home: Device) -> Option<Filesystem> {
        // With the object beside each name (Linux 5.17) a removed directory that somebody still holds is told by its id
        // too, not only by its name.
        let queue = sys::fanotify_init(QUEUE | libc::FAN_REPORT_TARGET_FID)
            .or_else(|_| sys::fanotify_init(QUEUE))
            .ok()?;
        let own = Filesystem {
            queue,
            home,
            marked: Mutex::default(),
            marks: AtomicU64::new(0),
            ignored: Ignored::default(),
        };
        let first = own.mark(entry, 0)?;
        own.marked().push(first);
        Some(own)
    }

    pub(super) fn queue(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    fn marked(&self) -> MutexGuard<'_, Vec<Marked>> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self, entry: &OwnedFd, number: u32) -> Option<Marked> {
        let fsid = rustix::fs::fstatvfs(entry).ok()?.f_fsid;
        can_find_by_handle(entry).ok().filter(|can| *can)?;
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM | libc::FAN_MARK_ONLYDIR;
        self.marks.fetch_add(1, Ordering::SeqCst);
        sys::fanotify_mark(self.queue.as_fd(), flags, CHANGES, entry.as_fd()).ok()?;
        let entry = Some(Arc::new(entry.try_clone().ok()?));
        Some(Marked { fsid, number, entry, watched: HashSet::new() })
    }

    /// See [`super::Watcher::watch`].
    pub(super) fn watch(&self, object: BorrowedFd<'_>, id: FileId) -> bool {
        if id.fs == 0 {
            return true;
        }
        let mut all = self.marked();
        if let Some(marked) = all.iter_mut().find(|marked| marked.number == id.fs && marked.entry.is_some()) {
            if marked.watched.len() >= WATCHED_MAX && !marked.watched.contains(&id) {
                return false;
            }
            marked.watched.insert(id);
            return true;
        }
        // Only a directory leads to a file system that was not met yet: a pipe or a device does things when opened.
        let Some(entry) = open_directory(object) else {
            return false;
        };
        let is_it = attributes::statx(entry.as_fd(), c"")
            .is_ok_and(|statx| attributes::file_id(&statx, self.home) == id);
        if !is_it || !local::tells_all(entry.as_fd()) {
            return false;
        }
        let Some(mut new) = self.mark(&entry, id.fs) else {
            return false;
        };
        // What is not watched any more makes room, and its number in events may be given to another.
        all.retain(|marked| {
            marked.entry.is_some() || (marked.fsid != new.fsid && marked.number != new.number)
        });
        if all.len() > FILE_SYSTEMS_MAX
            && let Some(over) = all.iter().position(|marked| marked.entry.is_none())
        {
            all.remove(over);
        }
        // Events of two file systems of one number could not be told apart.
        if all.len() > FILE_SYSTEMS_MAX || all.iter().any(|marked| marked.fsid == new.fsid) {
            self.unmark(&entry);
            return false;
        }
        new.watched.insert(id);
        all.push(new);
        true
    }

    /// See [`super::Watcher::unwatch`].
    pub(super) fn unwatch(&self, id: FileId) {
        if id.fs == 0 {
            return;
        }
        let mut all = self.marked();
        let Some(marked) = all.iter_mut().find(|marked| marked.number == id.fs && marked.entry.is_some())
        else {
            return;
        };
        marked.watched.remove(&id);
        if marked.watched.is_empty()
            && let Some(entry) = marked.entry.take()
        {
            self.unmark(&entry);
        }
    }

    /// A mark that cannot be removed only tells of more than is asked for.
    fn unmark(&self, entry: &OwnedFd) {
        let flags = libc::FAN_MARK_REMOVE | libc::FAN_MARK_FILESYSTEM | libc::FAN_MARK_ONLYDIR;
        let _ = sys::fanotify_mark(self.queue.as_fd(), flags, CHANGES, entry.as_fd());
    }

    /// A directory of the file system that this handle is of, where that is marked.
    fn entry_of(&self, handle: &Handle) -> Option<Arc<OwnedFd>> {
        let all = self.marked();
        all.iter().find(|marked| marked.fsid == handle.fsid)?.entry.clone()
    }

    /// Which object has this handle.
    fn find(&self, handle: &Handle) -> Found {
        let is_marked = self.marked().iter().any(|marked| marked.fsid == handle.fsid);
        let entry = match self.entry_of(handle) {
            Some(entry) => entry,
            None if is_marked => return Found::Gone,
            None => return Found::Unknown,
        };
        match look_up(&entry, handle) {
            Ok(statx) => Found::Id(attributes::file_id(&statx, self.home)),
            Err(Errno::STALE | Errno::NOENT) => Found::Gone,
            Err(_) => Found::Unknown,
        }
    }
}

/// What a handle leads to. While another object is made that has the number of a removed one, the kernel says of this one that it has
/// no memory (`iget_locked` in fs/inode.c finds `I_CREATING`, and ext4 takes its `NULL` for that); a moment later, that it is gone.
fn look_up(entry: &OwnedFd, handle: &Handle) -> Result<Statx, Errno> {
    let mut wait = RETRY_MIN;
    loop {
        match sys::open_by_handle(entry.as_fd(), handle.kind, &handle.bytes) {
            Ok(object) => return attributes::statx(object.as_fd(), c""),
            Err(Errno::NOMEM) if wait <= RETRY_MAX => std::thread::sleep(wait),
            Err(error) => return Err(error),
        }
        wait *= 2;
    }
}

/// Whether a handle leads back to its object: it takes the right to (`CAP_DAC_READ_SEARCH`), and a file system that can.
fn can_find_by_handle(entry: &OwnedFd) -> Result<bool, Errno> {
    let (kind, bytes) = sys::name_to_handle(entry.as_fd())?;
    let found = sys::open_by_handle(entry.as_fd(), kind, &bytes)?;
    let [found, expected] = [found.as_fd(), entry.as_fd()].map(|fd| attributes::statx(fd, c""));
    Ok(found?.stx_ino == expected?.stx_ino)
}
