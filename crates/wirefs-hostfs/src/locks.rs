//! The locks of all sessions. The host's kernel is the lock table, so that clients see the locks of each other and
//! of server programs.
//!
//! Each holder (session, owner, family, file) has its own open file description, which the kernel treats as one
//! holder: `F_OFD_SETLK` for ranges, `flock` for whole files. The held ranges are also kept here, with the holder's
//! identity, which the kernel does not report.

use crate::failure::{Failure, errno, uninterrupted};
use crate::open_files::{Access, OpenFile, Share};
use crate::resolve::Object;
use crate::sys::{self, Flock};
use rustix::fd::AsFd;
use rustix::fs::FlockOperation;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wirefs_op::{Errno, FileId, LockFamily, LockKind, LockRange, LockRanges, lock_ranges};
use wirefs_server::SessionKey;

/// Holders of one session at most, each with a descriptor.
const HOLDERS_MAX: usize = 4096;
/// Ranges of one holder at most.
const RANGES_MAX: usize = 4096;

/// The holder of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) session: SessionKey,
    /// Unique within the session.
    pub(crate) owner: u64,
    pub(crate) family: LockFamily,
    pub(crate) id: FileId,
}

/// A lock that was acquired.
pub(crate) struct AcquiredLock {
    /// The ranges that the holder held before.
    pub(crate) before: Vec<LockRange>,
    /// The open file.
    pub(crate) file: Arc<OpenFile>,
}

/// The open file description of one holder, and its locks.
#[derive(Debug)]
struct Description {
    holder: Holder,
    file: Arc<OpenFile>,
    held: Mutex<LockRanges>,
    _share: Share,
}

impl Description {
    fn held(&self) -> MutexGuard<'_, LockRanges> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a lock without waiting, and notes it.
    fn take(&self, range: LockRange) -> Result<AcquiredLock, Errno> {
        let mut held = self.held();
        if held.len() >= RANGES_MAX {
            return Err(Errno::NoLocks);
        }
        self.set(range)?;
        let before = held.to_vec();
        held.set(whole_for(self.holder.family, range));
        Ok(AcquiredLock { before, file: Arc::clone(&self.file) })
    }

    /// Takes or releases a lock in the kernel, without waiting.
    fn set(&self, range: LockRange) -> Result<(), Errno> {
        let outcome = match self.holder.family {
            LockFamily::Posix => uninterrupted(|| sys::set_ofd_lock(self.file.as_fd(), kernel_range(range))),
            LockFamily::Flock => {
                let operation = match range.kind {
                    LockKind::Read => FlockOperation::NonBlockingLockShared,
                    LockKind::Write => FlockOperation::NonBlockingLockExclusive,
                    LockKind::Unlock => FlockOperation::NonBlockingUnlock,
                };
                uninterrupted(|| rustix::fs::flock(&*self.file, operation))
            }
        };
        match outcome.map_err(errno) {
            // The kernel reports a conflict with either number.
            Err(Errno::AccessDenied | Errno::WouldBlock) => Err(Errno::WouldBlock),
            outcome => outcome,
        }
    }
}

#[derive(Debug, Default)]
struct Table {
    by_file: HashMap<FileId, Vec<Arc<Description>>>,
    holders: HashMap<SessionKey, usize>,
}

impl Table {
    fn find(&self, holder: &Holder) -> Option<Arc<Description>> {
        let descriptions = self.by_file.get(&holder.id)?;
        descriptions.iter().find(|description| description.holder == *holder).cloned()
    }

    fn insert(&mut self, description: &Arc<Description>) -> Result<(), Errno> {
        let count = self.holders.entry(description.holder.session).or_default();
        if *count >= HOLDERS_MAX {
            return Err(Errno::NoLocks);
        }
        *count += 1;
        let descriptions = self.by_file.entry(description.holder.id).or_default();
        descriptions.push(Arc::clone(description));
        Ok(())
    }

    /// Removes the descriptions that match `is_over`. The caller drops them after it releases the table's lock.
    fn take_out(&mut self, id: FileId, is_over: impl Fn(&Arc<Description>) -> bool) -> Vec<Arc<Description>> {
        let Some(descriptions) = self.by_file.get_mut(&id) else {
            return Vec::new();
        };
        let taken: Vec<_> = descriptions.extract_if(.., |description| is_over(description)).collect();
        if descriptions.is_empty() {
            self.by_file.remove(&id);
        }
        for description in &taken {
            let session = description.holder.session;
            if let Some(count) = self.holders.get_mut(&session) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.holders.remove(&session);
                }
            }
        }
        taken
    }
}

/// The locks of all sessions on one export.
#[derive(Debug, Default)]
pub(crate) struct LockTable {
    table: Mutex<Table>,
}

impl LockTable {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a lock. `has_ended`: whether the session has ended, so that no lock may be taken. `open` opens the
    /// file if the holder has no description; it stays open, so its name may be removed during the wait. `refused`
    /// is called after each failed attempt, and ends the wait with its error.
    ///
    /// # Errors
    /// Those of `open` and `refused`; `ENOLCK`: a table is full.
    pub(crate) fn lock(
        &self,
        holder: Holder,
        range: LockRange,
        has_ended: &AtomicBool,
        open: impl FnOnce() -> Result<(Share, Arc<OpenFile>), Errno>,
        mut refused: impl FnMut() -> Result<(), Failure>,
    ) -> Result<AcquiredLock, Failure> {
        let description = self.description(holder, has_ended, open)?;
        let outcome = loop {
            match description.take(range) {
                Err(Errno::WouldBlock) => {
                    if let Err(failure) = refused() {
                        break Err(failure);
                    }
                }
                outcome => break outcome.map_err(Failure::from),
            }
        };
        self.release_reference(description);
        outcome
    }

    /// Releases a range. A range without a lock counts as released.
    pub(crate) fn unlock(&self, holder: Holder, range: LockRange) -> Result<(), Failure> {
        let Some(description) = self.find(&holder) else {
            return Ok(());
        };
        let outcome = {
            let mut held = description.held();
            let outcome = description.set(range);
            if outcome.is_ok() {
                held.set(whole_for(holder.family, range));
            }
            outcome
        };
        self.release_reference(description);
        Ok(outcome?)
    }

    /// Undoes a lock whose reply was not sent: restores the holder's previous locks.
    pub(crate) fn restore(
        &self,
        holder: Holder,
        range: LockRange,
        before: &[LockRange],
    ) -> Result<(), Failure> {
        let Some(description) = self.find(&holder) else {
            return Ok(());
        };
        {
            let mut held = description.held();
            let back = lock_ranges::restoring(range, before);
            for range in back {
                if description.set(range).is_ok() {
                    held.set(whole_for(holder.family, range));
                }
            }
        }
        self.release_reference(description);
        Ok(())
    }

    /// Returns a byte-range lock that conflicts with `range`.
    pub(crate) fn test(
        &self,
        holder: Holder,
        range: LockRange,
        open: impl FnOnce() -> Result<Arc<OpenFile>, Errno>,
    ) -> Result<Option<LockRange>, Failure> {
        if range.kind == LockKind::Unlock {
            return Err(Errno::Invalid.into());
        }
        // This table knows the holder; the kernel knows the locks of server programs.
        if let Some(held) = self.held_by_others(&holder, range) {
            return Ok(Some(held));
        }
        // With the holder's own description, so that its own locks do not conflict.
        let own = self.find(&holder);
        let file = match &own {
            Some(description) => Arc::clone(&description.file),
            None => open()?,
        };
        let found = uninterrupted(|| sys::test_ofd_lock(file.as_fd(), kernel_range(range)));
        if let Some(description) = own {
            self.release_reference(description);
        }
        Ok(protocol_range(found?))
    }

    /// A lock of another holder of this table that conflicts with `range`.
    pub(crate) fn held_by_others(&self, holder: &Holder, range: LockRange) -> Option<LockRange> {
        let others: Vec<_> = {
            let table = self.table();
            let descriptions = table.by_file.get(&holder.id)?.iter();
            let others = descriptions.filter(|description| {
                description.holder != *holder && description.holder.family == holder.family
            });
            others.cloned().collect()
        };
        let conflict = others.iter().find_map(|description| description.held().conflict(range));
        for description in others {
            self.release_reference(description);
        }
        conflict
    }

    /// Releases all locks of a session.
    pub(crate) fn end(&self, session: SessionKey) {
        let mut table = self.table();
        let ids: Vec<_> = table.by_file.keys().copied().collect();
        let mut over = Vec::new();
        for id in ids {
            over.extend(table.take_out(id, |description| description.holder.session == session));
        }
        drop(table);
        // The descriptions are closed with their last references, after the table's lock is released.
        for description in over {
            let all = LockRange { kind: LockKind::Unlock, start: 0, end: u64::MAX, pid: 0 };
            // A waiting request may still refer to it. A failure is ignored, since the close releases the lock too.
            let _ = description.set(all);
        }
    }

    fn find(&self, holder: &Holder) -> Option<Arc<Description>> {
        self.table().find(holder)
    }

    fn description(
        &self,
        holder: Holder,
        has_ended: &AtomicBool,
        open: impl FnOnce() -> Result<(Share, Arc<OpenFile>), Errno>,
    ) -> Result<Arc<Description>, Failure> {
        if let Some(description) = self.find(&holder) {
            return Ok(description);
        }
        let (share, file) = open()?;
        if file.id != holder.id {
            return Err(Errno::Stale.into());
        }
        let description = Arc::new(Description { holder, file, held: Mutex::default(), _share: share });
        let mut table = self.table();
        // Checked under the lock that `end` takes after it set the flag.
        if has_ended.load(Ordering::SeqCst) {
            return Err(Failure::Stopped);
        }
        if let Some(first) = table.find(&holder) {
            return Ok(first);
        }
        table.insert(&description)?;
        Ok(description)
    }

    /// Drops a reference, and closes the description if it is the last one and there are no locks.
    fn release_reference(&self, description: Arc<Description>) {
        let id = description.holder.id;
        let mut table = self.table();
        // INVARIANT: new references are created only under the table's lock, so a single reference means that it is
        // unused.
        drop(description);
        let is_unused = |description: &Arc<Description>| {
            Arc::strong_count(description) == 1 && description.held().is_empty()
        };
        let unused = table.take_out(id, is_unused);
        drop(table);
        drop(unused);
    }
}

impl Object {
    /// Opens a description for locks of this family. A write lock on a range needs write access, and a description
    /// cannot be reopened without losing its locks. A whole-file lock does not need it, and a program that is open
    /// for writing cannot be executed.
    pub(crate) fn open_for_locks(&self, family: LockFamily) -> Result<Arc<OpenFile>, Errno> {
        let both = Access::READ.union(Access::WRITE);
        let order = match family {
            LockFamily::Posix => [both, Access::READ, Access::WRITE],
            LockFamily::Flock => [Access::READ, Access::WRITE, both],
        };
        let mut outcome = Err(Errno::NotSupported);
        for access in order {
            outcome = self.reopen(access);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

/// Whole-file locks have one range, whatever the request says.
fn whole_for(family: LockFamily, range: LockRange) -> LockRange {
    match family {
        LockFamily::Posix => range,
        LockFamily::Flock => LockRange { start: 0, end: u64::MAX, ..range },
    }
}

fn kernel_range(range: LockRange) -> Flock {
    let end = i64::try_from(range.end).unwrap_or(i64::MAX);
    let start = i64::try_from(range.start).unwrap_or(i64::MAX);
    Flock {
        kind: match range.kind {
            LockKind::Read => libc::F_RDLCK,
            LockKind::Write => libc::F_WRLCK,
            LockKind::Unlock => libc::F_UNLCK,
        },
        start,
        length: if end == i64::MAX { 0 } else { end - start + 1 },
        pid: 0,
    }
}

/// `None` if the kernel reports no lock.
fn protocol_range(lock: Flock) -> Option<LockRange> {
    let kind = match lock.kind {
        libc::F_RDLCK => LockKind::Read,
        libc::F_WRLCK => LockKind::Write,
        _ => return None,
    };
    let start = u64::try_from(lock.start).unwrap_or(0);
    let end = match u64::try_from(lock.length) {
        Ok(0) | Err(_) => u64::MAX,
        Ok(length) => start.saturating_add(length - 1),
    };
    let pid = u32::try_from(lock.pid).unwrap_or(0);
    Some(LockRange { kind, start, end, pid })
}
