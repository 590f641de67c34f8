//! The open files of a session: numbered, bounded, reused.

use crate::attributes::{self, Home};
use crate::put::Stream;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wirefs_op::limits::FDS_MAX;
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::{FileId, Kind};
use wirefs_server::Touched;

/// The access of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Access {
    pub(crate) const READ: Access = Access { read: true, write: false };
    pub(crate) const WRITE: Access = Access { read: false, write: true };

    /// Whether `self` includes `wanted`.
    pub(crate) fn covers(self, wanted: Access) -> bool {
        (self.read || !wanted.read) && (self.write || !wanted.write)
    }

    pub(crate) fn union(self, other: Access) -> Access {
        Access { read: self.read || other.read, write: self.write || other.write }
    }
}

/// One open file or directory.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) fd: OwnedFd,
    pub(crate) id: FileId,
    pub(crate) kind: Kind,
    pub(crate) access: Access,
    /// Locked while the file position is in use: listings, appends, seeks.
    position: Mutex<()>,
    pub(crate) stream: Stream,
}

impl OpenFile {
    pub(crate) fn new(fd: OwnedFd, id: FileId, kind: Kind, access: Access) -> Arc<OpenFile> {
        Arc::new(OpenFile { fd, id, kind, access, position: Mutex::new(()), stream: Stream::default() })
    }

    /// Locks the file position.
    pub(crate) fn position(&self) -> MutexGuard<'_, ()> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A name to remove when its file is closed.
#[derive(Debug)]
pub(crate) struct RemoveOnClose {
    pub(crate) dir: OwnedFd,
    pub(crate) dir_id: FileId,
    pub(crate) name: CString,
    pub(crate) id: FileId,
}

impl RemoveOnClose {
    /// The objects that the removal changes, if the name still refers to the file.
    pub(crate) fn touched(&self, home: Home) -> Vec<Touched> {
        let Ok(statx) = attributes::statx(self.dir.as_fd(), &self.name) else {
            return vec![];
        };
        // Directories are not removed this way.
        if attributes::file_id(&statx, home) != self.id || attributes::kind(&statx) == Kind::Directory {
            return vec![];
        }
        vec![Touched::name(self.dir_id, self.name.to_bytes()), Touched::with_other_names(self.id)]
    }
}

/// The limit of descriptors that are kept for all sessions, so that requests always find free ones.
#[derive(Debug)]
pub(crate) struct Budget {
    kept: AtomicUsize,
    kept_max: usize,
}

impl Budget {
    /// Three quarters of the process's limit; the rest is for requests, connections and locks.
    pub(crate) fn of_process() -> Arc<Budget> {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let openable = limit.current.and_then(|limit| usize::try_from(limit).ok());
        Arc::new(Budget {
            kept: AtomicUsize::new(0),
            kept_max: openable.map_or(usize::MAX, |openable| openable / 4 * 3),
        })
    }

    #[cfg(test)]
    fn with_max(kept_max: usize) -> Arc<Budget> {
        Arc::new(Budget { kept: AtomicUsize::new(0), kept_max })
    }
}

/// The share of one client, with all its sessions, in the descriptors that are kept. A client gets at most as many as it
/// leaves to the others.
#[derive(Debug)]
pub(crate) struct ClientBudget {
    all: Arc<Budget>,
    kept: AtomicUsize,
}

impl ClientBudget {
    pub(crate) fn new(all: Arc<Budget>) -> Arc<ClientBudget> {
        Arc::new(ClientBudget { all, kept: AtomicUsize::new(0) })
    }

    pub(crate) fn take(self: &Arc<ClientBudget>) -> Option<Share> {
        let share = Share(Arc::clone(self));
        let own = self.kept.fetch_add(1, Ordering::Relaxed);
        let all = self.all.kept.fetch_add(1, Ordering::Relaxed);
        (own < self.all.kept_max.saturating_sub(all)).then_some(share)
    }
}

/// Permission for one kept descriptor.
#[derive(Debug)]
pub(crate) struct Share(Arc<ClientBudget>);

impl Drop for Share {
    fn drop(&mut self) {
        self.0.kept.fetch_sub(1, Ordering::Relaxed);
        self.0.all.kept.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Parts of the table with their own locks; consecutive fds are in different parts.
const STRIPES: usize = 16;
const SLOTS_MAX: usize = FDS_MAX / STRIPES;

#[derive(Debug)]
struct Slot {
    file: Arc<OpenFile>,
    remove: Option<Arc<RemoveOnClose>>,
    _share: Share,
}

#[derive(Debug, Default)]
struct Stripe {
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
}

impl Stripe {
    fn insert(&mut self, slot: Slot) -> Result<usize, Slot> {
        if let Some(index) = self.free.pop() {
            if let Some(place) = self.slots.get_mut(index) {
                *place = Some(slot);
            }
            return Ok(index);
        }
        if self.slots.len() >= SLOTS_MAX {
            return Err(slot);
        }
        self.slots.push(Some(slot));
        Ok(self.slots.len() - 1)
    }

    fn slot(&mut self, index: usize, id: FileId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(index)?.as_mut()?;
        (slot.file.id == id).then_some(slot)
    }
}

/// A session's open files. No lock is held across a system call.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    stripes: [Mutex<Stripe>; STRIPES],
    turn: AtomicUsize,
    budget: Arc<ClientBudget>,
}

impl OpenFiles {
    pub(crate) fn new(budget: Arc<ClientBudget>) -> OpenFiles {
        OpenFiles { stripes: Default::default(), turn: AtomicUsize::new(0), budget }
    }

    /// Returns the client's share of the kept descriptors.
    pub(crate) fn budget(&self) -> &Arc<ClientBudget> {
        &self.budget
    }

    fn stripe(&self, number: usize) -> Option<MutexGuard<'_, Stripe>> {
        let stripe = self.stripes.get(number % STRIPES)?;
        Some(stripe.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn place(&self, fd: Fd) -> Option<(MutexGuard<'_, Stripe>, usize)> {
        if fd == NOFD {
            return None;
        }
        let number = usize::from(fd.0);
        Some((self.stripe(number)?, number / STRIPES))
    }

    /// The open file with this fd, if it is this object.
    pub(crate) fn find(&self, fd: Fd, id: FileId) -> Option<Arc<OpenFile>> {
        let (mut stripe, index) = self.place(fd)?;
        stripe.slot(index, id).map(|slot| Arc::clone(&slot.file))
    }

    /// Keeps a file open; `None` if there is no free fd.
    pub(crate) fn insert(&self, file: &Arc<OpenFile>) -> Option<Fd> {
        let mut slot = Slot { file: Arc::clone(file), remove: None, _share: self.budget.take()? };
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % STRIPES;
        for number in (first..STRIPES).chain(0..first) {
            match self.stripe(number)?.insert(slot) {
                Ok(index) => return u16::try_from(index * STRIPES + number).ok().map(Fd),
                Err(full) => slot = full,
            }
        }
        None
    }

    /// Replaces the descriptor of a kept file by another one of the same object.
    pub(crate) fn replace(&self, fd: Fd, file: &Arc<OpenFile>) {
        let replaced = self.place(fd).and_then(|(mut stripe, index)| {
            let slot = stripe.slot(index, file.id)?;
            Some(std::mem::replace(&mut slot.file, Arc::clone(file)))
        });
        // Closed here, after the lock is released.
        drop(replaced);
    }

    /// Notes the name to remove when this file is closed.
    pub(crate) fn remove_on_close(&self, fd: Fd, remove: RemoveOnClose) {
        if let Some((mut stripe, index)) = self.place(fd)
            && let Some(slot) = stripe.slot(index, remove.id)
        {
            slot.remove = Some(Arc::new(remove));
        }
    }

    /// The objects that closing this file would change, if it is this object.
    pub(crate) fn touched_by_closing(&self, fd: Fd, id: FileId, home: Home) -> Vec<Touched> {
        let remove = self.place(fd).and_then(|(mut stripe, index)| stripe.slot(index, id)?.remove.clone());
        remove.map_or_else(Vec::new, |remove| remove.touched(home))
    }

    /// Closes a file, if it is this object; returns the name to remove now.
    pub(crate) fn close(&self, fd: Fd, id: FileId) -> Option<Arc<RemoveOnClose>> {
        let slot = self.place(fd).and_then(|(mut stripe, index)| {
            stripe.slot(index, id)?;
            let slot = stripe.slots.get_mut(index)?.take();
            stripe.free.push(index);
            slot
        });
        slot.and_then(|slot| slot.remove)
    }

    /// Closes all files; returns the names to remove now.
    pub(crate) fn close_all(&self) -> Vec<Arc<RemoveOnClose>> {
        let mut removals = Vec::new();
        for number in 0..STRIPES {
            let stripe = self.stripe(number).map(|mut stripe| std::mem::take(&mut *stripe));
            let slots = stripe.into_iter().flat_map(|stripe| stripe.slots).flatten();
            removals.extend(slots.filter_map(|slot| slot.remove));
        }
        removals
    }
}

#[cfg(test)]
mod tests;
