//! Detection of external changes. Only objects whose external changes are detected may be leased.
//!
//! A lease rests on a watch that began before the read, and on the server core, which excludes concurrent changes
//! by other clients. A new object needs more: it is visible before the creating request knows its id and can touch
//! it. Until then nothing is leased ([`PendingCreations`]).

mod generation;
mod own_changes;
mod pending_creations;

use crate::failure::Failure;
use crate::resolve::{Entry, Object};
use crate::session::Session;
use crate::watch::{WatchKind, Watcher};
use generation::WatchGeneration;
pub(crate) use pending_creations::PendingCreation;
use pending_creations::PendingCreations;
use rustix::fd::{AsFd, BorrowedFd};
use std::ffi::CStr;
use std::iter::once;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use wirefs_op::message::attach::Watch;
use wirefs_op::message::version::BootId;
use wirefs_op::{Errno, FileId, Kind, Stat, is_lock_name};
use wirefs_server::{ExternalChange, ObserveChange, Replies, Touched};

/// The way in which external changes of a host directory are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectionMode {
    /// No detection, and no leases.
    Nothing,
    /// Watches of the best available kind, at most of this kind. No leases without a watch.
    Watched(WatchKind),
    /// No detection is needed: the administrator states that the directory changes only through this server.
    Exclusive,
}

/// The detection of external changes.
pub(crate) struct ChangeDetection {
    mode: DetectionMode,
    /// The callback for external changes, once it is set.
    observer: Arc<Mutex<Option<ObserveChange>>>,
    watcher: OnceLock<Watcher>,
    pub(crate) pending_creations: PendingCreations,
    pub(crate) generation: WatchGeneration,
}

/// The watch that covers an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// Every object is covered.
    All,
    /// Covered if it is on the file system of the export's root.
    RootFilesystem,
    /// Covered if its only name is in this directory, and it is not a directory.
    Names(FileId),
    /// It needs a watch of its own, which does not exist yet.
    OwnWatch,
    /// It is not covered.
    Nothing,
}

impl Coverage {
    /// Whether an object with these attributes is covered.
    pub(crate) fn covers(self, stat: &Stat) -> bool {
        match self {
            Coverage::All => true,
            Coverage::RootFilesystem => stat.id.fs == 0,
            Coverage::Names(dir) => stat.id.fs == dir.fs && stat.kind != Kind::Directory && stat.nlink == 1,
            Coverage::OwnWatch | Coverage::Nothing => false,
        }
    }
}

fn report_to(observer: &Mutex<Option<ObserveChange>>, change: ExternalChange) {
    if let Some(observer) = observer.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        observer(change);
    }
}

impl std::fmt::Debug for ChangeDetection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Promises")
            .field("mode", &self.mode)
            .field("watcher", &self.watcher)
            .finish_non_exhaustive()
    }
}

impl ChangeDetection {
    pub(crate) fn new(mode: DetectionMode) -> ChangeDetection {
        ChangeDetection {
            mode,
            observer: Arc::default(),
            watcher: OnceLock::new(),
            pending_creations: PendingCreations::default(),
            generation: WatchGeneration::default(),
        }
    }

    /// Sets the callback and starts the watcher.
    pub(crate) fn observe(&self, root: BorrowedFd<'_>, boot: BootId, observer: ObserveChange) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
        match self.mode {
            DetectionMode::Nothing | DetectionMode::Exclusive => {}
            DetectionMode::Watched(finest) => {
                let observer = Arc::clone(&self.observer);
                let report = move |change| report_to(&observer, change);
                self.watcher.get_or_init(|| Watcher::start(root, boot, finest, report));
            }
        }
    }

    /// Reports a change that no request made.
    pub(crate) fn report(&self, touched: Touched) {
        let Touched { id, name, .. } = touched;
        report_to(&self.observer, ExternalChange::Changed { id, name, version: None });
    }

    /// The external changes that are detected now; `None`: no leases.
    pub(crate) fn watch_kind(&self) -> Option<Watch> {
        match (self.mode, self.watcher.get().map(Watcher::kind)) {
            (DetectionMode::Exclusive, _) => Some(Watch::None),
            (DetectionMode::Watched(_), Some(WatchKind::Filesystem)) => Some(Watch::Filesystem),
            (DetectionMode::Watched(_), Some(WatchKind::Directories | WatchKind::DirectoriesAndOwn)) => {
                Some(Watch::Directories)
            }
            (DetectionMode::Nothing, _) | (DetectionMode::Watched(_), Some(WatchKind::Nothing) | None) => {
                None
            }
        }
    }

    /// Whether all earlier changes by server programs have been reported.
    pub(crate) fn is_quiet(&self) -> bool {
        match self.mode {
            DetectionMode::Nothing => false,
            DetectionMode::Exclusive => true,
            DetectionMode::Watched(_) => self.watcher.get().is_some_and(Watcher::is_quiet),
        }
    }

    /// Whether objects are watched through their directories, so that one watch covers all of them.
    pub(crate) fn watches_directories(&self) -> bool {
        self.watch_kind() == Some(Watch::Directories)
    }

    /// Whether the watcher also reports the server's own changes, which must be recognized by their versions.
    pub(crate) fn detects_own_changes(&self) -> bool {
        self.watcher.get().is_some_and(|watcher| watcher.kind() == WatchKind::DirectoriesAndOwn)
    }

    /// The coverage of an object whose directory is not known.
    pub(crate) fn object_coverage(&self) -> Coverage {
        match self.watch_kind() {
            Some(Watch::None) => Coverage::All,
            Some(Watch::Filesystem) => Coverage::RootFilesystem,
            Some(Watch::Directories) => Coverage::OwnWatch,
            None => Coverage::Nothing,
        }
    }

    /// Ensures that changes of this directory are detected from now on. Returns whether they are.
    pub(crate) fn ensure_watched(&self, dir: BorrowedFd<'_>, id: FileId) -> bool {
        match self.object_coverage() {
            Coverage::Nothing => false,
            Coverage::All => true,
            Coverage::RootFilesystem if id.fs == 0 => true,
            Coverage::RootFilesystem | Coverage::OwnWatch | Coverage::Names(_) => self.watch(dir, id),
        }
    }

    /// Begins a request on this thread. The request grants leases on the same thread.
    pub(crate) fn begin_request(&self) {
        self.generation.begin_request();
    }

    /// Releases watches that no lease needs. `leased` returns for each object whether it is leased.
    pub(crate) fn trim_watches(&self, leased: &dyn Fn(&[FileId]) -> Vec<bool>) -> Option<String> {
        let watcher = self.watcher.get()?;
        self.generation.trim(&watcher.trim_candidates(), leased, |id| watcher.unwatch(id));
        watcher.take_shortage().map(|shortage| shortage.to_string())
    }

    /// The present version of an object that has a watch, or that was reported recently.
    pub(crate) fn version(&self, id: FileId) -> Option<u64> {
        self.watcher.get()?.version(id)
    }

    /// Adds a watch for this object.
    fn watch(&self, object: BorrowedFd<'_>, id: FileId) -> bool {
        match self.mode {
            DetectionMode::Nothing => false,
            DetectionMode::Exclusive => true,
            DetectionMode::Watched(_) => self.watcher.get().is_some_and(|watcher| watcher.watch(object, id)),
        }
    }
}

impl Session {
    /// Reports all earlier changes by server programs, after a name was created that may serve as a lock. A client
    /// that gets the reply must not hold older data.
    ///
    /// # Guarantee
    /// S-52
    pub(crate) fn settle_lock_name(&self, name: &CStr) {
        if let Some(watcher) = self.detection().watcher.get().filter(|_| is_lock_name(name.to_bytes())) {
            // If the wait times out, the reports follow later.
            let _ = watcher.settle();
        }
    }

    fn detection(&self) -> &ChangeDetection {
        &self.export.detection
    }

    /// Ensures that changes of an object are detected from now on. Must precede the read of its attributes.
    pub(crate) fn cover(&self, object: &Object, replies: &mut dyn Replies) -> Coverage {
        match (object.coverage, &object.parent) {
            (Coverage::OwnWatch, Some(parent)) if object.kind != Kind::Directory => {
                self.cover_names(parent, replies)
            }
            (Coverage::OwnWatch, _) if self.detection().watch(object.as_fd(), object.id) => Coverage::All,
            (Coverage::OwnWatch, _) => Coverage::Nothing,
            (coverage, _) => coverage,
        }
    }

    /// The same for all objects with names in this directory.
    pub(crate) fn cover_names(&self, dir: &Object, replies: &mut dyn Replies) -> Coverage {
        match self.detection().object_coverage() {
            // A move of the name is reported for the directory, so only clients with a lease on its names learn of
            // it.
            Coverage::OwnWatch if self.lease_names(dir, replies) => Coverage::Names(dir.id),
            Coverage::OwnWatch => Coverage::Nothing,
            coverage => coverage,
        }
    }

    /// The coverage of a directory's entries, after a lease on its names was granted or refused.
    pub(crate) fn entry_coverage(&self, dir: FileId, is_leased: bool) -> Coverage {
        match self.detection().object_coverage() {
            Coverage::OwnWatch if is_leased => Coverage::Names(dir),
            Coverage::OwnWatch => Coverage::Nothing,
            coverage => coverage,
        }
    }

    /// An object that was found in this directory, with its coverage.
    pub(crate) fn covered_in(&self, dir: &Object, object: Object, replies: &mut dyn Replies) -> Object {
        if object.kind == Kind::Directory {
            return object;
        }
        let coverage = self.cover_names(dir, replies);
        object.with_coverage(coverage)
    }

    /// Grants a lease on the names of a directory.
    pub(crate) fn lease_names(&self, dir: &Object, replies: &mut dyn Replies) -> bool {
        let detection = self.detection();
        let mut is_leased = false;
        if detection.ensure_watched(dir.as_fd(), dir.id) && detection.pending_creations.are_finished() {
            detection.generation.if_current(|| is_leased = replies.grant_names(dir.id));
        }
        is_leased
    }

    /// Grants leases on these objects, as far as they are covered.
    pub(crate) fn lease(
        &self,
        coverage: Coverage,
        replies: &mut dyn Replies,
        stats: &mut dyn Iterator<Item = &mut Stat>,
    ) {
        let detection = self.detection();
        if coverage == Coverage::Nothing || !detection.pending_creations.are_finished() {
            return;
        }
        let watcher = detection.watcher.get();
        let mut ignored_ids = Vec::new();
        detection.generation.if_current(|| {
            let ignored = watcher.and_then(Watcher::ignored);
            let is_reported =
                |stat: &Stat| !ignored.as_ref().is_some_and(|ignored| ignored.contains(stat.id));
            replies.grant(&mut stats.filter(|stat| {
                let is_reported = is_reported(stat);
                if !is_reported {
                    ignored_ids.push(stat.id);
                }
                is_reported && coverage.covers(stat)
            }));
        });
        if let Some(watcher) = watcher.filter(|_| !ignored_ids.is_empty()) {
            detection.generation.advance(|| watcher.stop_ignoring(&ignored_ids));
        }
    }

    /// The same for all entries of a directory.
    pub(crate) fn lease_entries(
        &self,
        dir: (BorrowedFd<'_>, FileId),
        coverage: Coverage,
        replies: &mut dyn Replies,
        stats: &mut dyn Iterator<Item = &mut Stat>,
    ) {
        let (dir, FileId { fs, .. }) = dir;
        // On another file system each object is registered by id; the directory leads to that file system.
        if coverage == Coverage::RootFilesystem && fs != 0 {
            let watched = stats.filter(|stat| stat.id.fs == fs && self.detection().watch(dir, stat.id));
            let watched: Vec<&mut Stat> = watched.collect();
            return self.lease(Coverage::All, replies, &mut watched.into_iter());
        }
        self.lease(coverage, replies, stats);
    }

    /// The object's attributes, leased if possible.
    pub(crate) fn stat_leased(&self, object: &Object, replies: &mut dyn Replies) -> Result<Stat, Failure> {
        let mut coverage = self.cover(object, replies);
        let mut stat = self.stat(object)?;
        if coverage != Coverage::Nothing && !coverage.covers(&stat) {
            if !self.detection().watch(object.as_fd(), object.id) {
                return Ok(stat);
            }
            coverage = Coverage::All;
            // They may have changed before the watch began.
            stat = self.stat(object)?;
        }
        self.lease(coverage, replies, &mut once(&mut stat));
        Ok(stat)
    }

    /// The attributes of the object with this name, leased if possible.
    pub(crate) fn stat_child_leased(
        &self,
        entry: &Entry,
        replies: &mut dyn Replies,
    ) -> Result<Stat, Failure> {
        let coverage = self.cover_names(&entry.dir, replies);
        let mut stat = self.stat_child(entry)?;
        if coverage == Coverage::Nothing || coverage.covers(&stat) {
            self.lease(coverage, replies, &mut once(&mut stat));
            return Ok(stat);
        }
        match self.child(entry) {
            Ok(object) => self.stat_leased(&object, replies),
            Err(Errno::NotFound) => Err(Errno::NotFound.into()),
            // Its attributes may be read, but it may not be opened.
            Err(_) => Ok(stat),
        }
    }
}
