//! The locks that sessions hold on a tree that keeps its locks itself.
//!
//! ```text
//! session attached ──► may hold locks ──lock──► held ──unlock, session ends──► free
//! ```

mod answer;
#[cfg(test)]
mod tests;

pub use answer::StatOfLocked;

use crate::tree::SessionKey;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::{Errno, FileId, LockFamily, LockKind, LockRange, LockRanges, lock_ranges};

/// The maximum number of holders (owner and file) of one session.
const HOLDERS_MAX: usize = 4096;
/// The maximum number of ranges of one holder.
const RANGES_MAX: usize = 4096;
/// The range of a whole file.
const EVERYTHING: LockRange = LockRange { kind: LockKind::Unlock, start: 0, end: u64::MAX, pid: 0 };

/// The owner of locks on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub(crate) id: FileId,
    pub(crate) session: SessionKey,
    /// Unique within the session.
    pub(crate) owner: u64,
    pub(crate) is_whole_file: bool,
}

impl Holder {
    pub(crate) fn new(id: FileId, session: SessionKey, owner: u64, family: LockFamily) -> Holder {
        Holder { id, session, owner, is_whole_file: family == LockFamily::Flock }
    }

    /// Returns the range to lock: the whole file for `flock`.
    fn range(&self, range: LockRange) -> LockRange {
        if self.is_whole_file { LockRange { kind: range.kind, pid: range.pid, ..EVERYTHING } } else { range }
    }
}

/// The ranges that a holder held before a lock; used to undo it.
#[derive(Debug)]
pub(crate) struct LockUndo(Vec<LockRange>);

/// The locks of all sessions.
#[derive(Debug, Default)]
struct HeldLocks {
    /// Sessions that may hold locks.
    sessions: BTreeSet<SessionKey>,
    held: BTreeMap<Holder, LockRanges>,
}

impl HeldLocks {
    fn on_file(&self, id: FileId) -> impl Iterator<Item = (&Holder, &LockRanges)> {
        let first = Holder { id, session: SessionKey(0), owner: 0, is_whole_file: false };
        self.held.range(first..).take_while(move |(holder, _)| holder.id == id)
    }

    fn conflict(&self, wanted: &Holder, range: LockRange) -> Option<LockRange> {
        let others = self
            .on_file(wanted.id)
            .filter(|(holder, _)| **holder != *wanted && holder.is_whole_file == wanted.is_whole_file);
        others.into_iter().find_map(|(_, ranges)| ranges.conflict(range))
    }

    /// As [`HeldLocks::set`], but fails if the holder would exceed its number of ranges: a lock or unlock
    /// inside a range splits it.
    fn set_within_bounds(&mut self, holder: Holder, range: LockRange) -> Result<(), Errno> {
        let before = self.held.get(&holder).map(LockRanges::to_vec).unwrap_or_default();
        self.set(holder, range);
        let count = self.held.get(&holder).map_or(0, LockRanges::len);
        if count <= RANGES_MAX || count <= before.len() {
            return Ok(());
        }
        self.restore(holder, range, &before);
        Err(Errno::NoLocks)
    }

    /// Restores the ranges that the holder had before it changed `range`.
    fn restore(&mut self, holder: Holder, range: LockRange, before: &[LockRange]) {
        for range in lock_ranges::restoring(holder.range(range), before) {
            self.set(holder, range);
        }
    }

    fn set(&mut self, holder: Holder, range: LockRange) {
        let ranges = self.held.entry(holder).or_default();
        ranges.set(holder.range(range));
        if ranges.is_empty() {
            self.held.remove(&holder);
        }
    }
}

/// The locks of all sessions on one tree. No function blocks.
#[derive(Debug, Default)]
pub struct LockTable(Mutex<HeldLocks>);

impl LockTable {
    fn table(&self) -> MutexGuard<'_, HeldLocks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows a session to hold locks.
    pub fn begin(&self, session: SessionKey) {
        self.table().sessions.insert(session);
    }

    /// Releases all locks of a session and rejects further ones.
    pub fn end(&self, session: SessionKey) {
        let mut table = self.table();
        table.sessions.remove(&session);
        table.held.retain(|holder, _| holder.session != session);
    }

    /// Takes a lock without waiting.
    ///
    /// # Errors
    /// `WouldBlock`: another holder has a conflicting lock. `NoLocks`: a limit is reached. `Protocol`: the
    /// session has ended.
    pub(crate) fn lock(&self, holder: Holder, range: LockRange) -> Result<LockUndo, Errno> {
        let mut table = self.table();
        if !table.sessions.contains(&holder.session) {
            return Err(Errno::Protocol);
        }
        if table.conflict(&holder, holder.range(range)).is_some() {
            return Err(Errno::WouldBlock);
        }
        let before = table.held.get(&holder).map(LockRanges::to_vec);
        let holders = || table.held.keys().filter(|held| held.session == holder.session).count();
        if before.is_none() && holders() >= HOLDERS_MAX {
            return Err(Errno::NoLocks);
        }
        table.set_within_bounds(holder, range)?;
        Ok(LockUndo(before.unwrap_or_default()))
    }

    /// Releases a range; unlocked parts of it are ignored.
    ///
    /// # Errors
    /// `NoLocks`: the holder would exceed its number of ranges.
    pub(crate) fn unlock(&self, holder: Holder, range: LockRange) -> Result<(), Errno> {
        self.table().set_within_bounds(holder, LockRange { kind: LockKind::Unlock, ..range })
    }

    /// Undoes a lock whose reply was not delivered.
    pub(crate) fn undo(&self, holder: Holder, range: LockRange, before: &LockUndo) {
        self.table().restore(holder, range, &before.0);
    }

    /// Returns the first conflicting lock.
    pub(crate) fn test(&self, holder: Holder, range: LockRange) -> Option<LockRange> {
        self.table().conflict(&holder, holder.range(range))
    }
}
