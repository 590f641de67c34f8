//! News of single directories (fanotify, or inotify), for a user without special rights.

mod news;
mod queue;
mod told;

use super::events::Handle;
use super::{Shortage, local};
use crate::attributes::{self, Device, proc_path};
use crate::failure::uninterrupted;
pub(super) use news::News;
use queue::Queue;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use told::Told;
use wirefs_op::{FileId, Kind};

/// Watches at most, whatever the process and the user may have. Each pins one object in the kernel, some 2 KiB.
const WATCHES_MAX: usize = 1 << 16;
/// The part of the descriptors of the process that watches may take: one in so many. Files kept open for clients take
/// three quarters.
const DESCRIPTORS_PART: u64 = 8;

/// One watched object.
#[derive(Clone, Debug)]
struct Watched {
    id: FileId,
    kind: Kind,
    /// Opened for naming only. Names are looked up beneath it, so no path is needed, whoever renames what.
    fd: Arc<OwnedFd>,
    /// As events name it, where they do.
    handle: Option<Handle>,
}

impl Watched {
    /// Its version; `None`: it is gone.
    fn version(&self) -> Option<u64> {
        let statx = attributes::statx(self.fd.as_fd(), c"").ok().filter(|statx| statx.stx_nlink > 0)?;
        Some(attributes::version(&statx))
    }
}

#[derive(Debug, Default)]
struct Table {
    /// By the number of the watch: the kernel's, or ours where it has none.
    by_number: HashMap<i32, Watched>,
    numbers: HashMap<FileId, i32>,
    handles: HashMap<Handle, i32>,
    last_number: i32,
    /// The limit that was met, and whether it was told.
    shortage: Option<(Shortage, bool)>,
}

impl Table {
    fn insert(&mut self, number: i32, watched: Watched) {
        let id = watched.id;
        if let Some(handle) = &watched.handle {
            self.handles.insert(handle.clone(), number);
        }
        // The kernel knows one watch per object, so another id at this number is the same object's, and over.
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
    home: Device,
    watches_max: usize,
    table: Mutex<Table>,
    told: Mutex<Told>,
}

impl Directories {
    /// Makes a queue; see [`Queue::open`].
    pub(super) fn open(entry: BorrowedFd<'_>, home: Device, leaves_out_own: bool) -> Option<Directories> {
        let queue = Queue::open(entry, leaves_out_own)?;
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let part = descriptors.and_then(|all| usize::try_from(all / DESCRIPTORS_PART).ok());
        let watches_max = part.map_or(WATCHES_MAX, |part| part.min(WATCHES_MAX));
        Some(Directories { queue, home, watches_max, table: Mutex::default(), told: Mutex::default() })
    }

    /// Whether the server's own changes are not told of.
    pub(super) fn leaves_out_own(&self) -> bool {
        self.queue.leaves_out_own()
    }

    pub(super) fn queue(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`super::Watcher::watch`].
    pub(super) fn watch(&self, object: BorrowedFd<'_>, id: FileId) -> bool {
        if self.table().numbers.contains_key(&id) {
            return true;
        }
        let Ok(statx) = attributes::statx(object, c"") else {
            return false;
        };
        // Without a name it would be held from being freed; and a watch under a wrong id would tell of another object.
        if statx.stx_nlink == 0 || attributes::file_id(&statx, self.home) != id {
            return false;
        }
        if id.fs != 0 && !local::tells_all(object) {
            return false;
        }
        let kind = attributes::kind(&statx);
        // Through the system's table of open files it is this very object, whatever its name is by now; opened anew, since
        // the caller's descriptor may be one that keeps others from running or locking the file.
        let path = proc_path(object);
        let how = OFlags::PATH | OFlags::CLOEXEC;
        let Ok(fd) = uninterrupted(|| rustix::fs::open(&path, how, Mode::empty())) else {
            return false;
        };
        let handle = match self.queue.leaves_out_own() {
            true => queue::handle(fd.as_fd()).ok(),
            false => None,
        };
        if handle.is_none() && self.queue.leaves_out_own() {
            return false;
        }
        let mut table = self.table();
        if table.numbers.contains_key(&id) {
            return true;
        }
        // Of a disk and its copy, both mounted, events could not be told apart.
        if handle.as_ref().is_some_and(|handle| table.handles.contains_key(handle)) {
            return false;
        }
        let watched = table.by_number.len();
        if watched >= self.watches_max {
            table.set_shortage(Shortage::OpenFiles { watched });
            return false;
        }
        // INVARIANT: the table stays locked from here to the insertion, so that an event of the new watch, which needs
        // the table to be understood, finds it there.
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
            self.forget(number);
        }
    }

    /// Ends a watch; the object is let go of once the table is free again, since the last reference may free its blocks.
    fn forget(&self, number: i32) -> Option<Watched> {
        let mut table = self.table();
        let watched = table.remove(number)?;
        self.queue.remove(&proc_path(watched.fd.as_fd()), watched.kind, number);
        drop(table);
        Some(watched)
    }

    /// See [`super::Watcher::crowd`].
    pub(super) fn crowd(&self) -> Vec<FileId> {
        let table = self.table();
        let is_crowded = table.numbers.len() > self.watches_max / 2 || table.shortage.is_some();
        if is_crowded { table.numbers.keys().copied().collect() } else { Vec::new() }
    }

    /// See [`super::Watcher::version`].
    pub(super) fn version(&self, id: FileId) -> Option<u64> {
        let number = self.table().numbers.get(&id).copied();
        if let Some(itself) = number.and_then(|number| self.watched(number)) {
            return itself.version();
        }
        let (number, name) = self.told().place(id)?;
        let dir = self.watched(number)?;
        let statx = attributes::statx(dir.fd.as_fd(), &name).ok()?;
        (attributes::file_id(&statx, self.home) == id).then(|| attributes::version(&statx))
    }

    /// The object of this watch.
    fn watched(&self, number: i32) -> Option<Watched> {
        self.table().by_number.get(&number).cloned()
    }

    /// See [`super::Watcher::take_shortage`].
    pub(super) fn take_shortage(&self) -> Option<Shortage> {
        let mut table = self.table();
        let (shortage, was_told) = table.shortage.as_mut()?;
        (!std::mem::replace(was_told, true)).then_some(*shortage)
    }
}
