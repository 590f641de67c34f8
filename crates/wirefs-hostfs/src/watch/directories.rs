//! Watches of single directories (fanotify or inotify), for a user without root rights.

mod queue;
mod reader;
mod recent;

use super::events::Handle;
use super::{Shortage, local};
use crate::attributes::{self, Home, proc_path};
use crate::failure::uninterrupted;
use queue::Queue;
pub(super) use reader::DirectoryReader;
use recent::RecentReports;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wirefs_op::{FileId, Kind};

/// Watches at most. Each pins one object in the kernel, some 2 KiB.
const WATCHES_MAX: usize = 1 << 16;
/// The share of the process's descriptors for watches is one in so many. Open files of clients take three quarters.
const DESCRIPTORS_PART: u64 = 8;

/// One watched object.
#[derive(Clone, Debug)]
struct Watched {
    id: FileId,
    kind: Kind,
    /// An `O_PATH` descriptor. Names are looked up relative to it, so renames of its path do not matter.
    fd: Arc<OwnedFd>,
    /// Its handle, if events have handles.
    handle: Option<Handle>,
}

impl Watched {
    /// Its version; `None`: it has no name left.
    fn version(&self, home: Home) -> Option<u64> {
        let statx = attributes::statx(self.fd.as_fd(), c"").ok().filter(|statx| statx.stx_nlink > 0)?;
        Some(attributes::version(&statx, home))
    }
}

#[derive(Debug, Default)]
struct Table {
    /// By the number of the watch: the kernel's number, or our own for fanotify.
    by_number: HashMap<i32, Watched>,
    numbers: HashMap<FileId, i32>,
    handles: HashMap<Handle, i32>,
    last_number: i32,
    /// The limit that was reached, and whether it was reported.
    shortage: Option<(Shortage, bool)>,
}

impl Table {
    fn insert(&mut self, number: i32, watched: Watched) {
        let id = watched.id;
        if let Some(handle) = &watched.handle {
            self.handles.insert(handle.clone(), number);
        }
        // The kernel has one watch per object. Another id at this number is a former id of the same object.
        if let Some(former) = self.by_number.insert(number, watched) {
            self.numbers.remove(&former.id);
        }
        self.numbers.insert(id, number);
    }

    fn remove(&mut self, number: i32) -> Option<Watched> {
        let watched = self.by_number.remove(&number)?;
        self.numbers.remove(&watched.id);
        if let Some(handle) =
            watched.handle.as_ref().filter(|handle| self.handles.get(handle) == Some(&number))
        {
            self.handles.remove(handle);
        }
        Some(watched)
    }

    /// A number that no watch has.
    fn next_number(&mut self) -> i32 {
        while self.by_number.contains_key(&self.last_number) {
            self.last_number = self.last_number.wrapping_add(1);
        }
        self.last_number
    }

    fn set_shortage(&mut self, shortage: Shortage) {
        self.shortage.get_or_insert((shortage, false));
    }
}

/// Watched directories and files.
#[derive(Debug)]
pub(super) struct Directories {
    queue: Queue,
    home: Home,
    watches_max: usize,
    table: Mutex<Table>,
    recent: Mutex<RecentReports>,
}

impl Directories {
    /// Creates a queue; see [`Queue::open`].
    pub(super) fn open(entry: BorrowedFd<'_>, home: Home, excludes_own: bool) -> Option<Directories> {
        let queue = Queue::open(entry, excludes_own)?;
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let part = descriptors.and_then(|all| usize::try_from(all / DESCRIPTORS_PART).ok());
        let watches_max = part.map_or(WATCHES_MAX, |part| part.min(WATCHES_MAX));
        Some(Directories { queue, home, watches_max, table: Mutex::default(), recent: Mutex::default() })
    }

    /// Whether own changes are excluded.
    pub(super) fn excludes_own(&self) -> bool {
        self.queue.excludes_own()
    }

    pub(super) fn queue(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent(&self) -> MutexGuard<'_, RecentReports> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`super::Watcher::watch`].
    pub(super) fn watch(&self, object: BorrowedFd<'_>, id: FileId) -> bool {
        if self.table().numbers.contains_key(&id) {
            return true;
        }
        let Ok(statx) = attributes::statx(object, c"") else {
            return false;
        };
        // An object without a name could not be freed, and a watch with a wrong id would report another object.
        if statx.stx_nlink == 0 || attributes::file_id(&statx, self.home) != id {
            return false;
        }
        if id.fs != 0 && !local::reports_all_changes(object) {
            return false;
        }
        let kind = attributes::kind(&statx);
        // The path in /proc leads to this object, whatever its present name is. It is opened again, since the
        // caller's descriptor may prevent programs from executing or locking the file.
        let path = proc_path(object);
        let how = OFlags::PATH | OFlags::CLOEXEC;
        let Ok(fd) = uninterrupted(|| rustix::fs::open(&path, how, Mode::empty())) else {
            return false;
        };
        let handle = match self.queue.excludes_own() {
            true => queue::handle(fd.as_fd()).ok(),
            false => None,
        };
        if handle.is_none() && self.queue.excludes_own() {
            return false;
        }
        let mut table = self.table();
        if table.numbers.contains_key(&id) {
            return true;
        }
        // Events of a disk and its copy, both mounted, would be indistinguishable.
        if handle.as_ref().is_some_and(|handle| table.handles.contains_key(handle)) {
            return false;
        }
        let watched = table.by_number.len();
        if watched >= self.watches_max {
            table.set_shortage(Shortage::OpenFiles { watched });
            return false;
        }
        // INVARIANT: the table stays locked until the insertion, so that the reader finds the watch when its first
        // event arrives.
        match self.queue.add(&path, kind) {
            Ok(number) => {
                let number = number.unwrap_or_else(|| table.next_number());
                table.insert(number, Watched { id, kind, fd: Arc::new(fd), handle });
                true
            }
            Err(error) => {
                if error == Errno::NOSPC {
                    table.set_shortage(Shortage::UserWatches { watched });
                }
                false
            }
        }
    }

    /// See [`super::Watcher::unwatch`].
    pub(super) fn unwatch(&self, id: FileId) {
        let number = self.table().numbers.get(&id).copied();
        if let Some(number) = number {
            self.end_watch(number);
        }
    }

    /// Ends a watch. Returns the object, so that its descriptor is closed after the table is unlocked: the last close
    /// of a removed file frees its blocks on the disk, which takes time.
    fn end_watch(&self, number: i32) -> Option<Watched> {
        let mut table = self.table();
        let watched = table.remove(number)?;
        self.queue.remove(&proc_path(watched.fd.as_fd()), watched.kind, number);
        drop(table);
        Some(watched)
    }

    /// See [`super::Watcher::trim_candidates`].
    pub(super) fn trim_candidates(&self) -> Vec<FileId> {
        let table = self.table();
        let is_crowded = table.numbers.len() > self.watches_max / 2 || table.shortage.is_some();
        if is_crowded { table.numbers.keys().copied().collect() } else { Vec::new() }
    }

    /// See [`super::Watcher::version`].
    pub(super) fn version(&self, id: FileId) -> Option<u64> {
        let number = self.table().numbers.get(&id).copied();
        if let Some(itself) = number.and_then(|number| self.watched(number)) {
            return itself.version(self.home);
        }
        let (number, name) = self.recent().place(id)?;
        let dir = self.watched(number)?;
        let statx = attributes::statx(dir.fd.as_fd(), &name).ok()?;
        (attributes::file_id(&statx, self.home) == id).then(|| attributes::version(&statx, self.home))
    }

    /// The object of this watch.
    fn watched(&self, number: i32) -> Option<Watched> {
        self.table().by_number.get(&number).cloned()
    }

    /// See [`super::Watcher::take_shortage`].
    pub(super) fn take_shortage(&self) -> Option<Shortage> {
        let mut table = self.table();
        let (shortage, was_reported) = table.shortage.as_mut()?;
        (!std::mem::replace(was_reported, true)).then_some(*shortage)
    }
}
