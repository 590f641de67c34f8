//! The locks that sessions hold on one block tree.
//!
//! ```text
//! session attached ──► may hold ──lock──► held ──unlock, session over──► free
//! ```

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_op::{Errno, FileId, LockFamily, LockKind, LockRange, LockRanges, lock_ranges};
use wirefs_server::SessionKey;

/// Holders (owners on a file) that one session may have at most.
const HOLDERS_MAX: usize = 4096;
/// Ranges that one holder may hold at most.
const RANGES_MAX: usize = 4096;
/// All bytes of a file.
const EVERYTHING: LockRange = LockRange { kind: LockKind::Unlock, start: 0, end: u64::MAX, pid: 0 };

/// Who holds or wants locks.
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

    /// Whole-file locks have one range, whatever the request says.
    fn range(&self, range: LockRange) -> LockRange {
        if self.is_whole_file { LockRange { kind: range.kind, pid: range.pid, ..EVERYTHING } } else { range }
    }
}

/// What the holder held before a lock was taken, by which that can be undone.
#[derive(Debug)]
pub(crate) struct Before(Vec<LockRange>);

#[derive(Debug, Default)]
struct Table {
    /// Those that may hold anything.
    sessions: BTreeSet<SessionKey>,
    held: BTreeMap<Holder, LockRanges>,
}

impl Table {
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

    /// As [`Table::set`], unless more ranges would come of it than a holder may hold: a lock that is taken or released
    /// within others leaves two where one was.
    fn set_within_bounds(&mut self, holder: Holder, range: LockRange) -> Result<(), Errno> {
        let before = self.held.get(&holder).map(LockRanges::to_vec).unwrap_or_default();
        self.set(holder, range);
        let count = self.held.get(&holder).map_or(0, LockRanges::len);
        if count <= RANGES_MAX || count <= before.len() {
            return Ok(());
        }
        self.put_back(holder, range, &before);
        Err(Errno::NoLocks)
    }

    /// The holder has again what it had before it changed `range`.
    fn put_back(&mut self, holder: Holder, range: LockRange, before: &[LockRange]) {
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

/// All sessions' locks on one tree. Nothing here waits.
#[derive(Debug, Default)]
pub(crate) struct LockTable(Mutex<Table>);

impl LockTable {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session may hold locks from now on.
    pub(crate) fn begin(&self, session: SessionKey) {
        self.table().sessions.insert(session);
    }

    /// Releases all that a session holds; it gets no more.
    pub(crate) fn end(&self, session: SessionKey) {
        let mut table = self.table();
        table.sessions.remove(&session);
        table.held.retain(|holder, _| holder.session != session);
    }

    /// Takes a lock now.
    ///
    /// # Errors
    /// `WouldBlock`: another holds it; `NoLocks`: a table is full; `Protocol`: the session is over.
    pub(crate) fn lock(&self, holder: Holder, range: LockRange) -> Result<Before, Errno> {
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
        Ok(Before(before.unwrap_or_default()))
    }

    /// Releases a range; what is not held is released already.
    ///
    /// # Errors
    /// `NoLocks`: it would leave more ranges than a holder may hold.
    pub(crate) fn unlock(&self, holder: Holder, range: LockRange) -> Result<(), Errno> {
        self.table().set_within_bounds(holder, LockRange { kind: LockKind::Unlock, ..range })
    }

    /// Undoes a lock that nobody heard of: the holder has again what it had before.
    pub(crate) fn give_back(&self, holder: Holder, range: LockRange, before: &Before) {
        self.table().put_back(holder, range, &before.0);
    }

    /// The lock that would stand in the way.
    pub(crate) fn test(&self, holder: Holder, range: LockRange) -> Option<LockRange> {
        self.table().conflict(&holder, holder.range(range))
    }
}
