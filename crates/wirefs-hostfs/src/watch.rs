//! The watcher: detects changes of the exported directory by server programs, so that leases can be recalled.
//!
//! There are three kinds. As root, the kernel reports each change of a whole file system with the process that made
//! it (fanotify). No watch per directory is needed, and the server's own changes are excluded. Without root rights
//! each directory has a watch. Own changes are excluded there too (fanotify, from Linux 5.17 on, on file systems
//! with handles). Otherwise (inotify) own changes are reported as well, with the version after them. Then an
//! external change at the same moment may be taken for an own one.
//!
//! ```text
//!   kernel's queue --> round: read, each object once --> ids --> report(ExternalChange) --> pause --> next round
//! ```
//!
//! A round reads the whole queue, so that a thousand writes to one file become one report. During the pause after
//! it the next events collect. A change after the read of an event queues another event. So the last change is
//! always reported, and the version in a report is read after the change.
//!
//! The kernel does not report writes through a shared mapping (`mmap`), neither to fanotify nor to inotify. Such a
//! write updates the change time, so the next validation of the file detects it.
//!
//! With watches of single directories, a file with one name is watched through the directory of this name. If a
//! program links it into an unwatched directory and changes it by that name, the change is not reported. For the
//! link the kernel reports only the file and the new directory (`fsnotify_link` in include/linux/fsnotify.h), for
//! the change only the directory of the used name. The next validation of the file detects the change. Where own
//! changes are excluded, all changes by this process are.

mod batch;
mod directories;
mod events;
mod filesystem;
mod local;
mod mounts;
mod rate_limit;
mod rounds;

use crate::attributes::{self, Home};
use directories::Directories;
use filesystem::Filesystem;
pub(crate) use filesystem::IgnoredFiles;
use rounds::Running;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::sync::Arc;
use wirefs_op::FileId;
use wirefs_op::message::version::BootId;
use wirefs_server::{ExternalChange, ObserveChange};

/// The way in which changes are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchKind {
    /// The kernel reports all changes of the export's file system, except for the server's own.
    Filesystem,
    /// The kernel reports changes in each directory for which [`Watcher::watch`] was called, except for the
    /// server's own.
    Directories,
    /// The same including the server's own changes.
    DirectoriesAndOwn,
    /// No changes are detected.
    Nothing,
}

/// A limit that was reached, so that further objects are not watched. The text names the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// The system's limit for this user.
    #[error(
        "this user may watch no more than {watched} directories; mounts validate cached data of the others. Raise \
         fs.fanotify.max_user_marks and fs.inotify.max_user_watches (sysctl), or serve as root, which needs no watches"
    )]
    UserWatches {
        /// Directories and files that are watched.
        watched: usize,
    },
    /// The limit of open files of this process; each watch takes a descriptor.
    #[error(
        "{watched} directories are watched, as many as the limit of open files allows; mounts validate cached data of \
        the others. Raise that limit (ulimit -n, LimitNOFILE=), or serve as root, which needs no watches"
    )]
    OpenFiles {
        /// Directories and files that are watched.
        watched: usize,
    },
}

/// The source of events.
#[derive(Debug)]
enum WatchSource {
    Filesystem(Arc<Filesystem>),
    Directories(Arc<Directories>),
    Nothing,
}

/// Watches one exported directory until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    source: WatchSource,
    running: Option<Running>,
}

impl Watcher {
    /// Starts to watch the tree below `root` with the best available kind, at most `finest`. Reported versions are those
    /// of this boot. `report` is called for
    /// each change in the watcher's own thread. It must not block for long, because the kernel's queue fills
    /// meanwhile.
    ///
    /// With [`WatchKind::Filesystem`] changes outside the exported directory are reported too.
    ///
    /// # Cost
    /// One thread, which sleeps while nothing changes. A report follows its change after at most some 5 ms plus the
    /// time of earlier reports. Memory is bounded: tens of MiB, and one descriptor per watched directory.
    #[must_use]
    pub fn start(
        root: BorrowedFd<'_>,
        boot: BootId,
        finest: WatchKind,
        report: impl FnMut(ExternalChange) + Send + 'static,
    ) -> Watcher {
        Watcher::start_boxed(root, boot, finest, Box::new(report))
            .unwrap_or(Watcher { source: WatchSource::Nothing, running: None })
    }

    fn start_boxed(
        root: BorrowedFd<'_>,
        boot: BootId,
        finest: WatchKind,
        observer: ObserveChange,
    ) -> Option<Watcher> {
        let home = Home::new(&attributes::statx(root, c"").ok()?, boot);
        let entry = open_directory(root)?;
        if finest == WatchKind::Nothing || !local::reports_all_changes(entry.as_fd()) {
            return None;
        }
        let whole = match finest {
            WatchKind::Filesystem => Filesystem::open(&entry, home),
            WatchKind::Directories | WatchKind::DirectoriesAndOwn | WatchKind::Nothing => None,
        };
        let (source, running) = if let Some(whole) = whole {
            let whole = Arc::new(whole);
            let reader = filesystem::FilesystemReader::new(Arc::clone(&whole));
            (WatchSource::Filesystem(whole), Running::start(reader, entry, observer)?)
        } else {
            let excludes_own = finest != WatchKind::DirectoriesAndOwn;
            let directories = Arc::new(Directories::open(entry.as_fd(), home, excludes_own)?);
            let reader = directories::DirectoryReader::new(Arc::clone(&directories));
            (WatchSource::Directories(directories), Running::start(reader, entry, observer)?)
        };
        Some(Watcher { source, running: Some(running) })
    }

    /// The way in which changes are detected. [`WatchKind::Nothing`] after a failure of the watcher, which it
    /// reported as [`ExternalChange::Lost`].
    #[must_use]
    pub fn kind(&self) -> WatchKind {
        if self.running.as_ref().is_none_or(Running::has_failed) {
            return WatchKind::Nothing;
        }
        match &self.source {
            WatchSource::Filesystem(_) => WatchKind::Filesystem,
            WatchSource::Directories(source) if source.excludes_own() => WatchKind::Directories,
            WatchSource::Directories(_) => WatchKind::DirectoriesAndOwn,
            WatchSource::Nothing => WatchKind::Nothing,
        }
    }

    /// Whether all changes by server programs before the call have been reported. Always false if own changes are
    /// recognized by versions: an external change during an own one is taken for a part of it.
    ///
    /// # Cost
    /// One system call.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let Some(running) = &self.running else { return false };
        match &self.source {
            WatchSource::Filesystem(source) => running.is_quiet(source.queue()),
            WatchSource::Directories(source) if source.excludes_own() => running.is_quiet(source.queue()),
            WatchSource::Directories(_) | WatchSource::Nothing => false,
        }
    }

    /// Ensures that changes of `object`, whose id is `id`, are reported from now on. Must precede the read of the
    /// data. A repeated call costs no system call.
    ///
    /// A watch of a directory covers its names and the objects that they refer to, but no deeper levels. An object
    /// with other names (`nlink` above 1), or one whose directory is not known, is covered only by
    /// [`WatchKind::Filesystem`] or by a watch of its own, for which this is called as well.
    ///
    /// A watched file system below the export cannot be unmounted.
    ///
    /// Returns false if the object cannot be watched, and so must not be leased. Reasons: its file system changes
    /// without this kernel (a network file system), it may not be read, it has no name left, or a limit is reached
    /// (see [`Watcher::take_shortage`]).
    ///
    /// # Cost
    /// None on the export's file system with [`WatchKind::Filesystem`]; else three system calls and a descriptor.
    #[must_use]
    pub fn watch(&self, object: BorrowedFd<'_>, id: FileId) -> bool {
        if self.running.as_ref().is_none_or(Running::has_failed) {
            return false;
        }
        match &self.source {
            WatchSource::Filesystem(source) => source.watch(object, id),
            WatchSource::Directories(source) => source.watch(object, id),
            WatchSource::Nothing => false,
        }
    }

    /// Ends the watch of this object. Events in the kernel's queue may still be reported.
    pub fn unwatch(&self, id: FileId) {
        match &self.source {
            WatchSource::Filesystem(source) => source.unwatch(id),
            WatchSource::Directories(source) => source.unwatch(id),
            WatchSource::Nothing => {}
        }
    }

    /// The objects with a watch, if they use more than half of the limit.
    #[must_use]
    pub fn trim_candidates(&self) -> Vec<FileId> {
        match &self.source {
            WatchSource::Directories(source) => source.trim_candidates(),
            WatchSource::Filesystem(_) | WatchSource::Nothing => Vec::new(),
        }
    }

    /// The busy files that are not reported at present, and so must not be leased. While the result exists, none is
    /// added. `None`: all changes of watched objects are reported.
    pub(crate) fn ignored(&self) -> Option<IgnoredFiles<'_>> {
        match &self.source {
            WatchSource::Filesystem(source) => Some(source.ignored()),
            WatchSource::Directories(_) | WatchSource::Nothing => None,
        }
    }

    /// Reports these files again. Data of them that was read before must not be leased.
    pub(crate) fn stop_ignoring(&self, ids: &[FileId]) {
        match &self.source {
            WatchSource::Filesystem(source) => source.stop_ignoring(ids),
            WatchSource::Directories(_) | WatchSource::Nothing => {}
        }
    }

    /// Waits until the watcher's thread has reported all queued changes. The kernel queues an event before the
    /// program's call returns (`fsnotify`). So all changes that a program made before it created or removed a name
    /// are reported.
    ///
    /// Returns false if that takes longer than 1 s, or if nothing is watched.
    ///
    /// # Cost
    /// Two thread switches and the time of the reports.
    pub fn settle(&self) -> bool {
        self.running.as_ref().is_some_and(Running::settle)
    }

    /// The present version of an object that has a watch, or that was reported recently through its directory.
    #[must_use]
    pub fn version(&self, id: FileId) -> Option<u64> {
        match &self.source {
            WatchSource::Directories(source) => source.version(id),
            WatchSource::Filesystem(_) | WatchSource::Nothing => None,
        }
    }

    /// The limit that prevented a watch, for a warning to the administrator. Returned once.
    #[must_use]
    pub fn take_shortage(&self) -> Option<Shortage> {
        match &self.source {
            WatchSource::Directories(source) => source.take_shortage(),
            WatchSource::Filesystem(_) | WatchSource::Nothing => None,
        }
    }
}

/// Opens the directory that `dir`, an `O_PATH` descriptor, refers to.
fn open_directory(dir: BorrowedFd<'_>) -> Option<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, c".", how, Mode::empty()).ok()
}
