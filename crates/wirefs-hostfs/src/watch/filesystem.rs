//! Watches of whole file systems (fanotify), for root. They need no preparation per object, and report which
//! process made a change.

mod handle_cache;
mod ignored;
mod reader;

use super::events::{self, Handle};
use super::{local, open_directory};
use crate::attributes::{self, Home};
use crate::sys;
use ignored::Ignored;
pub(crate) use ignored::IgnoredFiles;
pub(super) use reader::FilesystemReader;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::Statx;
use rustix::io::Errno;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wirefs_op::FileId;

/// Flags of the queue. Without permission events, which would block programs; objects by handle, so that no file is
/// opened for an event; names with the handle of their directory.
const QUEUE: u32 = libc::FAN_CLASS_NOTIF
    | libc::FAN_CLOEXEC
    | libc::FAN_NONBLOCK
    | libc::FAN_REPORT_FID
    | libc::FAN_REPORT_DFID_NAME;

/// The requested events. Reads and opens are left out: they change only the access time. Closes are included: a
/// program that wrote through a mapping often closes the file afterwards.
const CHANGES: u64 = events::NAMES | events::OBJECTS | libc::FAN_ONDIR;

/// The events that a busy file causes repeatedly.
const OBJECT_ATTRIBUTES: u64 = libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE | libc::FAN_ATTRIB;

/// Watched file systems below the export at most.
const FILE_SYSTEMS_MAX: usize = 64;
/// Registered objects per such file system.
const WATCHED_MAX: usize = 1 << 16;

/// The first wait before a repeated lookup after ENOMEM.
const RETRY_MIN: Duration = Duration::from_micros(10);
/// The last wait; 10 ms in all.
const RETRY_MAX: Duration = Duration::from_micros(5120);

/// A file system that is, or was, marked.
#[derive(Debug)]
struct Marked {
    /// Its number in events.
    fsid: u64,
    /// Its number in ids; 0 is the export's own.
    number: u32,
    /// An open directory on it, which the lookup of handles needs. It prevents an unmount; `None` if no object on
    /// it is watched any more.
    entry: Option<Arc<OwnedFd>>,
    /// The registered objects on it. Empty for the export's own file system, which is always watched.
    watched: HashSet<FileId>,
}

/// The result of the lookup of a handle.
enum HandleLookup {
    Id(FileId),
    /// The object is gone, or is not watched any more.
    Gone,
    /// The lookup failed.
    Unknown,
}

/// Marked file systems.
#[derive(Debug)]
pub(super) struct Filesystem {
    queue: OwnedFd,
    home: Home,
    /// The export's own comes first.
    marked: Mutex<Vec<Marked>>,
    /// The number of marks so far. After a remount the handles of a file system are the same, but its number and
    /// the ids may differ.
    marks: AtomicU64,
    ignored: Ignored,
}

impl Filesystem {
    /// Marks the file system of `entry`. `None`: not permitted, or not supported by the file system or the kernel.
    pub(super) fn open(entry: &OwnedFd, home: Home) -> Option<Filesystem> {
        // With the object's handle beside each name (Linux 5.17), the removal of an open directory is reported by
        // its id too.
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
        // Only a directory may be opened to mark a new file system: opening a pipe or a device has side effects.
        let Some(entry) = open_directory(object) else {
            return false;
        };
        let is_it = attributes::statx(entry.as_fd(), c"")
            .is_ok_and(|statx| attributes::file_id(&statx, self.home) == id);
        if !is_it || !local::reports_all_changes(entry.as_fd()) {
            return false;
        }
        let Some(mut new) = self.mark(&entry, id.fs) else {
            return false;
        };
        // File systems that are not watched any more make room. Their numbers in events may be reused.
        all.retain(|marked| {
            marked.entry.is_some() || (marked.fsid != new.fsid && marked.number != new.number)
        });
        if all.len() > FILE_SYSTEMS_MAX
            && let Some(over) = all.iter().position(|marked| marked.entry.is_none())
        {
            all.remove(over);
        }
        // Events of two file systems with the same number would be indistinguishable.
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

    /// If a mark cannot be removed, it only causes unneeded reports.
    fn unmark(&self, entry: &OwnedFd) {
        let flags = libc::FAN_MARK_REMOVE | libc::FAN_MARK_FILESYSTEM | libc::FAN_MARK_ONLYDIR;
        let _ = sys::fanotify_mark(self.queue.as_fd(), flags, CHANGES, entry.as_fd());
    }

    /// An open directory on the file system of this handle, if it is marked.
    fn entry_of(&self, handle: &Handle) -> Option<Arc<OwnedFd>> {
        let all = self.marked();
        all.iter().find(|marked| marked.fsid == handle.fsid)?.entry.clone()
    }

    /// Looks up the object of a handle.
    fn find(&self, handle: &Handle) -> HandleLookup {
        let is_marked = self.marked().iter().any(|marked| marked.fsid == handle.fsid);
        let entry = match self.entry_of(handle) {
            Some(entry) => entry,
            None if is_marked => return HandleLookup::Gone,
            None => return HandleLookup::Unknown,
        };
        match look_up(&entry, handle) {
            Ok(statx) => HandleLookup::Id(attributes::file_id(&statx, self.home)),
            Err(Errno::STALE | Errno::NOENT) => HandleLookup::Gone,
            Err(_) => HandleLookup::Unknown,
        }
    }
}

/// The attributes of the object with this handle. If a new object is being created under the number of a removed
/// one, the kernel returns ENOMEM for the old handle (`iget_locked` in fs/inode.c finds `I_CREATING`, and ext4
/// takes its `NULL` for that), and shortly afterwards ESTALE.
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

/// Whether objects can be opened by handle. That needs `CAP_DAC_READ_SEARCH` and support by the file system.
fn can_find_by_handle(entry: &OwnedFd) -> Result<bool, Errno> {
    let (kind, bytes) = sys::name_to_handle(entry.as_fd())?;
    let found = sys::open_by_handle(entry.as_fd(), kind, &bytes)?;
    let [found, expected] = [found.as_fd(), entry.as_fd()].map(|fd| attributes::statx(fd, c""));
    Ok(found?.stx_ino == expected?.stx_ino)
}
