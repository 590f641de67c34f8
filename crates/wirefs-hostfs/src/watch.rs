//! The watcher: notices what programs on the server change in the exported directory, so that whoever was promised to hear
//! of changes does.
//!
//! There are three kinds of it. With the rights of root the kernel tells of each change to a whole file system, with the
//! process that made it (fanotify): nothing need be asked for, and the server's own changes are left out. Without these
//! rights each directory is watched by itself, with the own changes left out as well (fanotify, from Linux 5.17 on, on file systems
//! that have handles). Else (inotify) these are told like all others, with the version that they left behind; then a
//! program's change in the very moment of an own one may be taken for that.
//!
//! ```text
//!   kernel's queue --> round: read, each thing once --> ids --> tell(ExternalChange) --> pause --> next round
//! ```
//!
//! A round takes all that the queue holds, so that a thousand writes to one file are one report; the pause after it lets
//! the next thousand gather. What happens after a thing was read from the queue queues it again, so the last change is
//! always told, and the version in a report is read after the change that it tells of.
//!
//! No kernel tells of a write through a shared mapping (`mmap`), neither to fanotify nor to inotify. Nothing can be done
//! about that here: such a write moves the change time, which is seen when the file is validated the next time.
//!
//! With single directories watched, a file with one name is noticed through the directory of that name. A program that links it
//! into a directory which is not watched, and changes it by that name, is not noticed: of a link only the file itself and the
//! directory of the new name are told (`fsnotify_link` in include/linux/fsnotify.h), and of a change the directory of the name
//! by which it was made. It is seen when the file is asked for the next time. Where own changes are left out, nothing is told
//! that this process does, also beside serving.

mod batch;
mod directories;
mod events;
mod filesystem;
mod local;
mod mounts;
mod rounds;
mod spaced;

use crate::attributes::{self, Device};
use directories::Directories;
use filesystem::Filesystem;
pub(crate) use filesystem::IgnoredFiles;
use rounds::Running;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::sync::Arc;
use wirefs_op::FileId;
use wirefs_server::{ExternalChange, ObserveChange};

/// How changes are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchKind {
    /// The kernel tells of all changes to the file system that the export is on, without the server's own.
    Filesystem,
    /// The kernel tells of what happens in each directory for which [`Watcher::watch`] was called, without the server's own
    /// changes.
    Directories,
    /// The same with the server's own changes.
    DirectoriesAndOwn,
    /// Nothing can be noticed.
    Nothing,
}

/// A limit that was reached; what does not fit is not watched. The text says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// The system's limit for this user.
    #[error(
        "the system lets this user watch no more than {watched} directories; mounts ask again about the others. Raise \
         fs.fanotify.max_user_marks and fs.inotify.max_user_watches (sysctl), or serve as root, which needs no watches"
    )]
    UserWatches {
        /// Directories and files that are watched now.
        watched: usize,
    },
    /// This process' own limit, each watch taking a descriptor.
    #[error(
        "{watched} directories are watched, as many as the limit of open files allows; mounts ask again about the \
         others. Raise that limit (ulimit -n, LimitNOFILE=), or serve as root, which needs no watches"
    )]
    OpenFiles {
        /// Directories and files that are watched now.
        watched: usize,
    },
}

/// Where the news come from.
#[derive(Debug)]
enum Source {
    Filesystem(Arc<Filesystem>),
    Directories(Arc<Directories>),
    Nothing,
}

/// Watches one exported directory until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    source: Source,
    running: Option<Running>,
}

impl Watcher {
    /// Starts to watch the tree below `root` by the best means there are, but none better than `finest`; `tell` hears of
    /// each change, in a thread of the watcher's own, and must not wait for long: meanwhile the kernel's queue fills.
    ///
    /// With [`WatchKind::Filesystem`] all changes to the file systems are told, those beside the exported directory too.
    ///
    /// # Cost
    /// One thread, which sleeps while nothing changes. From a change to its report: at most some 5 ms beside what the
    /// report itself takes. Memory is bounded: tens of MiB, and one descriptor for each watch of a directory.
    #[must_use]
    pub fn start(
        root: BorrowedFd<'_>,
        finest: WatchKind,
        tell: impl FnMut(ExternalChange) + Send + 'static,
    ) -> Watcher {
        Watcher::start_boxed(root, finest, Box::new(tell))
            .unwrap_or(Watcher { source: Source::Nothing, running: None })
    }

    fn start_boxed(root: BorrowedFd<'_>, finest: WatchKind, tell: ObserveChange) -> Option<Watcher> {
        let home = Device::of(&attributes::statx(root, c"").ok()?);
        let entry = open_directory(root)?;
        if finest == WatchKind::Nothing || !local::tells_all(entry.as_fd()) {
            return None;
        }
        let whole = match finest {
            WatchKind::Filesystem => Filesystem::open(&entry, home),
            WatchKind::Directories | WatchKind::DirectoriesAndOwn | WatchKind::Nothing => None,
        };
        let (source, running) = if let Some(whole) = whole {
            let whole = Arc::new(whole);
            let news = filesystem::News::new(Arc::clone(&whole));
            (Source::Filesystem(whole), Running::start(news, entry, tell)?)
        } else {
            let leaves_out_own = finest != WatchKind::DirectoriesAndOwn;
            let directories = Arc::new(Directories::open(entry.as_fd(), home, leaves_out_own)?);
            let news = directories::News::new(Arc::clone(&directories));
            (Source::Directories(directories), Running::start(news, entry, tell)?)
        };
        Some(Watcher { source, running: Some(running) })
    }

    /// How changes are noticed; [`WatchKind::Nothing`] also once the watcher has failed, after which it told
    /// [`ExternalChange::Lost`].
    #[must_use]
    pub fn kind(&self) -> WatchKind {
        if self.running.as_ref().is_none_or(Running::has_failed) {
            return WatchKind::Nothing;
        }
        match &self.source {
            Source::Filesystem(_) => WatchKind::Filesystem,
            Source::Directories(source) if source.leaves_out_own() => WatchKind::Directories,
            Source::Directories(_) => WatchKind::DirectoriesAndOwn,
            Source::Nothing => WatchKind::Nothing,
        }
    }

    /// Whether all changes that programs at the server had made before the call were reported. `false` also where the server's own
    /// changes are told apart by versions: a change that a program makes in the middle of one is taken for a part of it.
    ///
    /// # Cost
    /// One system call.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let Some(running) = &self.running else { return false };
        match &self.source {
            Source::Filesystem(source) => running.is_quiet(source.queue()),
            Source::Directories(source) if source.leaves_out_own() => running.is_quiet(source.queue()),
            Source::Directories(_) | Source::Nothing => false,
        }
    }

    /// Sees to it that changes to `object`, which is `id`, are told from now on; to be called before that is read of
    /// which changes are to be told. Again for what is watched already costs no system call.
    ///
    /// A watch of a directory covers the names in it and the objects that they lead to, not what is further below. An
    /// object with another name elsewhere (`nlink` above 1), or one that is served without a look at its place, is
    /// covered by [`WatchKind::Filesystem`] only; else by a watch of its own, which this makes for it as well.
    ///
    /// While anything on a file system below the export is watched, that cannot be unmounted.
    ///
    /// `false`: it cannot be watched, so nobody must be promised to hear of its changes. It is on a file system that
    /// changes without this kernel (a network's), may not be read, has no name left, or a limit is reached (see
    /// [`Watcher::take_shortage`]).
    ///
    /// # Cost
    /// On the export's own file system none with [`WatchKind::Filesystem`]; else three system calls and a descriptor.
    #[must_use]
    pub fn watch(&self, object: BorrowedFd<'_>, id: FileId) -> bool {
        if self.running.as_ref().is_none_or(Running::has_failed) {
            return false;
        }
        match &self.source {
            Source::Filesystem(source) => source.watch(object, id),
            Source::Directories(source) => source.watch(object, id),
            Source::Nothing => false,
        }
    }

    /// Changes to this object need not be told any more. What the kernel had queued already may still be.
    pub fn unwatch(&self, id: FileId) {
        match &self.source {
            Source::Filesystem(source) => source.unwatch(id),
            Source::Directories(source) => source.unwatch(id),
            Source::Nothing => {}
        }
    }

    /// The objects that are watched one by one, if those are more than half of what the limits allow.
    #[must_use]
    pub fn crowd(&self) -> Vec<FileId> {
        match &self.source {
            Source::Directories(source) => source.crowd(),
            Source::Filesystem(_) | Source::Nothing => Vec::new(),
        }
    }

    /// The busy files of which nothing is told at present. Nobody must be promised to hear of one; while the answer lives none is added.
    /// `None`: each change of what is watched is told.
    pub(crate) fn ignored(&self) -> Option<IgnoredFiles<'_>> {
        match &self.source {
            Source::Filesystem(source) => Some(source.ignored()),
            Source::Directories(_) | Source::Nothing => None,
        }
    }

    /// Tells of these files again, from here on: of what was read before, nobody must be promised to hear.
    pub(crate) fn hear_again(&self, ids: &[FileId]) {
        match &self.source {
            Source::Filesystem(source) => source.hear_again(ids),
            Source::Directories(_) | Source::Nothing => {}
        }
    }

    /// Waits until all changes that are queued now are reported, in the watcher's own thread. A change by another program is queued before the
    /// program goes on (`fsnotify` in the kernel), so what it did before a name was created or removed is reported by then.
    ///
    /// `false`: they are not, after 1 s, or nothing is watched.
    ///
    /// # Cost
    /// Two switches of threads, and what the reports take.
    pub fn settle(&self) -> bool {
        self.running.as_ref().is_some_and(Running::settle)
    }

    /// The version, as it is now, of an object that is watched by itself, or was told of of late through its directory.
    #[must_use]
    pub fn version(&self, id: FileId) -> Option<u64> {
        match &self.source {
            Source::Directories(source) => source.version(id),
            Source::Filesystem(_) | Source::Nothing => None,
        }
    }

    /// The limit that kept something from being watched, if one did; told once, to be said to whoever runs the server.
    #[must_use]
    pub fn take_shortage(&self) -> Option<Shortage> {
        match &self.source {
            Source::Directories(source) => source.take_shortage(),
            Source::Filesystem(_) | Source::Nothing => None,
        }
    }
}

/// Opens what `dir` stands for so that it is really open, not for naming only.
fn open_directory(dir: BorrowedFd<'_>) -> Option<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, c".", how, Mode::empty()).ok()
}
