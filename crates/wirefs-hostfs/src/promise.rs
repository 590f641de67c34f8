//! What clients are promised to hear of: only that of which each change is noticed, whoever makes it.
//!
//! A promise about what was read stands on a watch that began before the reading, and on the server's word that no other
//! client changes it meanwhile. A new object needs one thing more: it is there for all to see before its maker knows
//! which it is, and so could tell nobody of what the same request writes to it. While that lasts nothing is promised
//! ([`Births`]).

mod births;
mod own;
mod watches;

use crate::failure::Failure;
use crate::resolve::{Entry, Object};
use crate::session::Session;
use crate::watch::{WatchKind, Watcher};
pub(crate) use births::Birth;
use births::Births;
use rustix::fd::{AsFd, BorrowedFd};
use std::ffi::CStr;
use std::iter::once;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use watches::Watches;
use wirefs_op::message::attach::Watch;
use wirefs_op::{Errno, FileId, Kind, Stat, is_lock_name};
use wirefs_server::{ExternalChange, ObserveChange, Replies, Touched};

/// Which changes a host directory notices that are not made through this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// None are looked for, and nothing is promised.
    Nothing,
    /// What the best watch tells that can be had, but none better than this. Without a watch nothing is promised.
    Watched(WatchKind),
    /// There are none: whoever exports the directory says that it changes only through this server.
    Exclusive,
}

/// How changes are noticed.
pub(crate) struct Promises {
    notice: Notice,
    /// Who hears of changes; empty until somebody wants to.
    tell: Arc<Mutex<Option<ObserveChange>>>,
    watcher: OnceLock<Watcher>,
    pub(crate) births: Births,
    pub(crate) watches: Watches,
}

/// By what the changes of an object are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noticed {
    /// Whatever it is.
    All,
    /// If it is on the file system of the export's root.
    Home,
    /// If this directory has its only name, and it is no directory.
    Names(FileId),
    /// By a watch of its own, which is to be made.
    Itself,
    /// They are not.
    Nothing,
}

impl Noticed {
    /// Whether the changes of what has these attributes are noticed.
    pub(crate) fn covers(self, stat: &Stat) -> bool {
        match self {
            Noticed::All => true,
            Noticed::Home => stat.id.fs == 0,
            Noticed::Names(dir) => stat.id.fs == dir.fs && stat.kind != Kind::Directory && stat.nlink == 1,
            Noticed::Itself | Noticed::Nothing => false,
        }
    }
}

fn tell_of(tell: &Mutex<Option<ObserveChange>>, outside: ExternalChange) {
    if let Some(tell) = tell.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        tell(outside);
    }
}

impl std::fmt::Debug for Promises {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Promises")
            .field("notice", &self.notice)
            .field("watcher", &self.watcher)
            .finish_non_exhaustive()
    }
}

impl Promises {
    pub(crate) fn new(notice: Notice) -> Promises {
        Promises {
            notice,
            tell: Arc::default(),
            watcher: OnceLock::new(),
            births: Births::default(),
            watches: Watches::default(),
        }
    }

    /// Begins to tell of what is noticed.
    pub(crate) fn observe(&self, root: BorrowedFd<'_>, tell: ObserveChange) {
        *self.tell.lock().unwrap_or_else(PoisonError::into_inner) = Some(tell);
        match self.notice {
            Notice::Nothing | Notice::Exclusive => {}
            Notice::Watched(finest) => {
                let heard = Arc::clone(&self.tell);
                let tell = move |outside| tell_of(&heard, outside);
                self.watcher.get_or_init(|| Watcher::start(root, finest, tell));
            }
        }
    }

    /// Tells of a change that no request asked for.
    pub(crate) fn tell(&self, touched: Touched) {
        let Touched { id, name, .. } = touched;
        tell_of(&self.tell, ExternalChange::Changed { id, name, version: None });
    }

    /// What is noticed at present; `None`: nothing is promised.
    pub(crate) fn watch_kind(&self) -> Option<Watch> {
        match (self.notice, self.watcher.get().map(Watcher::kind)) {
            (Notice::Exclusive, _) => Some(Watch::None),
            (Notice::Watched(_), Some(WatchKind::Filesystem)) => Some(Watch::Filesystem),
            (Notice::Watched(_), Some(WatchKind::Directories | WatchKind::DirectoriesAndOwn)) => {
                Some(Watch::Directories)
            }
            (Notice::Nothing, _) | (Notice::Watched(_), Some(WatchKind::Nothing) | None) => None,
        }
    }

    /// Whether nothing that programs at the server have changed is still to be reported.
    pub(crate) fn is_quiet(&self) -> bool {
        match self.notice {
            Notice::Nothing => false,
            Notice::Exclusive => true,
            Notice::Watched(_) => self.watcher.get().is_some_and(Watcher::is_quiet),
        }
    }

    /// Whether an object is looked for through the directory that it is in, so that one watch does for all in there.
    pub(crate) fn watches_directories(&self) -> bool {
        self.watch_kind() == Some(Watch::Directories)
    }

    /// Whether what is noticed includes what this server does, so that it has to be told apart by versions.
    pub(crate) fn notices_own(&self) -> bool {
        self.watcher.get().is_some_and(|watcher| watcher.kind() == WatchKind::DirectoriesAndOwn)
    }

    /// By what an object is noticed that is met with no regard to its place.
    pub(crate) fn of_object(&self) -> Noticed {
        match self.watch_kind() {
            Some(Watch::None) => Noticed::All,
            Some(Watch::Filesystem) => Noticed::Home,
            Some(Watch::Directories) => Noticed::Itself,
            None => Noticed::Nothing,
        }
    }

    /// Sees to it that changes of this directory are noticed from now on.
    pub(crate) fn notices(&self, dir: BorrowedFd<'_>, id: FileId) -> bool {
        match self.of_object() {
            Noticed::Nothing => false,
            Noticed::All => true,
            Noticed::Home if id.fs == 0 => true,
            Noticed::Home | Noticed::Itself | Noticed::Names(_) => self.watch(dir, id),
        }
    }

    /// A request begins on this thread. What it promises, it promises on this thread.
    pub(crate) fn begin(&self) {
        self.watches.begin();
    }

    /// Lets go of watches that nobody relies on. `known`: of these objects, those that somebody was promised to hear about.
    pub(crate) fn tend(&self, known: &dyn Fn(&[FileId]) -> Vec<bool>) -> Option<String> {
        let watcher = self.watcher.get()?;
        self.watches.trim(&watcher.crowd(), known, |id| watcher.unwatch(id));
        watcher.take_shortage().map(|shortage| shortage.to_string())
    }

    /// The version of an object now, as far as it is watched by itself or was told of of late.
    pub(crate) fn version(&self, id: FileId) -> Option<u64> {
        self.watcher.get()?.version(id)
    }

    /// Has this very object watched.
    fn watch(&self, object: BorrowedFd<'_>, id: FileId) -> bool {
        match self.notice {
            Notice::Nothing => false,
            Notice::Exclusive => true,
            Notice::Watched(_) => self.watcher.get().is_some_and(|watcher| watcher.watch(object, id)),
        }
    }
}

impl Session {
    /// A name was created exclusively, which gives its program a lock if it is the name of one. What other programs did before they let go of
    /// it is reported before the reply, so that clients believe nothing older once they have it.
    ///
    /// # Guarantee
    /// S-52
    pub(crate) fn created_exclusively(&self, name: &CStr) {
        if let Some(watcher) = self.promises().watcher.get().filter(|_| is_lock_name(name.to_bytes())) {
            // After the wait the reports come as they do for any other name.
            let _ = watcher.settle();
        }
    }

    fn promises(&self) -> &Promises {
        &self.export.promises
    }

    /// Sees to it that the changes of an object are noticed from now on. Before its attributes are read.
    pub(crate) fn notice(&self, object: &Object, replies: &mut dyn Replies) -> Noticed {
        match (object.noticed, &object.parent) {
            (Noticed::Itself, Some(parent)) if object.kind != Kind::Directory => {
                self.notice_names(parent, replies)
            }
            (Noticed::Itself, _) if self.promises().watch(object.as_fd(), object.id) => Noticed::All,
            (Noticed::Itself, _) => Noticed::Nothing,
            (noticed, _) => noticed,
        }
    }

    /// The same for all that has a name in this directory.
    pub(crate) fn notice_names(&self, dir: &Object, replies: &mut dyn Replies) -> Noticed {
        match self.promises().of_object() {
            // A name that moves away is told by the directory, to those who know that.
            Noticed::Itself if self.promise_names(dir, replies) => Noticed::Names(dir.id),
            Noticed::Itself => Noticed::Nothing,
            noticed => noticed,
        }
    }

    /// By what the entries of a directory are noticed that was promised itself, or was not.
    pub(crate) fn noticed_entries(&self, dir: FileId, is_promised: bool) -> Noticed {
        match self.promises().of_object() {
            Noticed::Itself if is_promised => Noticed::Names(dir),
            Noticed::Itself => Noticed::Nothing,
            noticed => noticed,
        }
    }

    /// An object that was found in this directory, which has its changes noticed.
    pub(crate) fn noticed_in(&self, dir: &Object, object: Object, replies: &mut dyn Replies) -> Object {
        if object.kind == Kind::Directory {
            return object;
        }
        let noticed = self.notice_names(dir, replies);
        object.noticed_by(noticed)
    }

    /// Promises to tell what changes in a directory's names.
    pub(crate) fn promise_names(&self, dir: &Object, replies: &mut dyn Replies) -> bool {
        let promises = self.promises();
        let mut is_promised = false;
        if promises.notices(dir.as_fd(), dir.id) && promises.births.are_known() {
            promises.watches.promise(|| is_promised = replies.grant_names(dir.id));
        }
        is_promised
    }

    /// Promises to tell of changes to these objects, as far as they are noticed.
    pub(crate) fn promise(
        &self,
        noticed: Noticed,
        replies: &mut dyn Replies,
        stats: &mut dyn Iterator<Item = &mut Stat>,
    ) {
        let promises = self.promises();
        if noticed == Noticed::Nothing || !promises.births.are_known() {
            return;
        }
        let watcher = promises.watcher.get();
        let mut asked_for = Vec::new();
        promises.watches.promise(|| {
            let ignored = watcher.and_then(Watcher::ignored);
            let is_heard = |stat: &Stat| !ignored.as_ref().is_some_and(|ignored| ignored.contains(stat.id));
            replies.grant(&mut stats.filter(|stat| {
                let is_heard = is_heard(stat);
                if !is_heard {
                    asked_for.push(stat.id);
                }
                is_heard && noticed.covers(stat)
            }));
        });
        if let Some(watcher) = watcher.filter(|_| !asked_for.is_empty()) {
            promises.watches.begin_anew(|| watcher.hear_again(&asked_for));
        }
    }

    /// The same for all entries of a directory.
    pub(crate) fn promise_entries(
        &self,
        dir: (BorrowedFd<'_>, FileId),
        noticed: Noticed,
        replies: &mut dyn Replies,
        stats: &mut dyn Iterator<Item = &mut Stat>,
    ) {
        let (dir, FileId { fs, .. }) = dir;
        // On another file system each object is watched under its own number; the directory leads to that file system.
        if noticed == Noticed::Home && fs != 0 {
            let watched = stats.filter(|stat| stat.id.fs == fs && self.promises().watch(dir, stat.id));
            let watched: Vec<&mut Stat> = watched.collect();
            return self.promise(Noticed::All, replies, &mut watched.into_iter());
        }
        self.promise(noticed, replies, stats);
    }

    /// The object's attributes, promised where possible.
    pub(crate) fn stat_promised(&self, object: &Object, replies: &mut dyn Replies) -> Result<Stat, Failure> {
        let mut noticed = self.notice(object, replies);
        let mut stat = self.stat(object)?;
        if noticed != Noticed::Nothing && !noticed.covers(&stat) {
            if !self.promises().watch(object.as_fd(), object.id) {
                return Ok(stat);
            }
            noticed = Noticed::All;
            // What was read before the watch began may have changed since.
            stat = self.stat(object)?;
        }
        self.promise(noticed, replies, &mut once(&mut stat));
        Ok(stat)
    }

    /// The attributes of what has this name, promised where possible.
    pub(crate) fn stat_child_promised(
        &self,
        entry: &Entry,
        replies: &mut dyn Replies,
    ) -> Result<Stat, Failure> {
        let noticed = self.notice_names(&entry.dir, replies);
        let mut stat = self.stat_child(entry)?;
        if noticed == Noticed::Nothing || noticed.covers(&stat) {
            self.promise(noticed, replies, &mut once(&mut stat));
            return Ok(stat);
        }
        match self.child(entry) {
            Ok(object) => self.stat_promised(&object, replies),
            Err(Errno::NotFound) => Err(Errno::NotFound.into()),
            // It may be looked at, but not be held.
            Err(_) => Ok(stat),
        }
    }
}
