//! Delegated locks: a lock that this mount holds at the server may be wider than the program's own. Lock requests
//! within it are answered here (`docs/design/0020-lock-delegation.md`).
//!
//! ```text
//!   Exact      each owner has exactly its own locks at the server       the server answers each request
//!   Asking     the whole file is requested for one owner                other requests wait for the outcome
//!   Delegated  this owner has the whole file locked at the server       its locks and tests are answered here
//! ```
//!
//! | from | by | to |
//! |---|---|---|
//! | Exact | a lock of the only owner here, in an exclusive session | Asking |
//! | Asking | the request is granted | Delegated |
//! | Asking | the request is refused | Exact, and the program's own lock is requested |
//! | Delegated, shared | an exclusive lock of the same owner | Asking |
//! | Delegated | another owner; a pause; a long delegation; another session; the last close; a change of the file at the server | Exact: the surplus is released |
//!
//! INVARIANT: the locks that an owner has at the server cover the locks that it holds here. Without a reply of the
//! server they are only reduced, and after all earlier lock requests. So at no time can others get a lock that is held
//! here.

mod file;

pub(crate) use file::{Asked, FileLocks, Refusal, Step};

use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_op::{FileId, LockFamily, LockKind, LockRange, Time};

/// An unused delegation is reduced to the held locks after this time.
const IDLE: Duration = Duration::from_secs(1);
/// The longest delegation, until its owner holds nothing: then a process at the server that polls for the lock can get it.
const DELEGATED_FOR: Duration = Duration::from_secs(4);
/// The pause between two delegations: a process at the server that polls for the lock, as databases do, tries again within 100 ms.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause before the next delegation request after a refused one.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// The pause before the next delegation request after a program at the server changed the file. Such a program probably
/// alternates with programs here, and would wait for [`IDLE`] each time.
const CHANGED_FOR: Duration = Duration::from_secs(10);
/// If a file was written to under a lock within this time, its next delegation is exclusive.
const WRITTEN_FOR: Duration = Duration::from_secs(10);
/// The maximum number of ranges that an owner holds under a delegated lock. With more, the lock is not delegated, and
/// the server applies its own limit.
const RANGES_MAX: usize = 1024;
/// Requests that may queue for the outcome of one delegation request.
const QUEUED_MAX: usize = 4096;

/// A lock of the whole file.
fn whole(kind: LockKind, pid: u32) -> LockRange {
    LockRange { kind, start: 0, end: u64::MAX, pid }
}

/// Which of the two families, as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    node: TreeNodeId,
    is_flock: bool,
}

impl Key {
    pub(crate) fn node(self) -> TreeNodeId {
        self.node
    }

    pub(crate) fn family(self) -> LockFamily {
        if self.is_flock { LockFamily::Flock } else { LockFamily::Posix }
    }
}

/// The locks of this mount's programs, by file and family.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    files: BTreeMap<Key, FileLocks>,
    /// The files at the server that an owner has requested locks of. In mode `session`, a node becomes another file
    /// when a copy is published, and the server still has the lock on the former file.
    asked_of: BTreeMap<(Key, u64), Vec<FileId>>,
    /// Locks that were answered here.
    pub(crate) answered: u64,
}

impl Locks {
    pub(crate) fn key(node: TreeNodeId, family: LockFamily) -> Key {
        Key { node, is_flock: family == LockFamily::Flock }
    }

    pub(crate) fn file(&mut self, key: Key) -> &mut FileLocks {
        self.files.entry(key).or_insert_with(|| FileLocks::of(key.is_flock))
    }

    /// Returns the keys of all records.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.files.keys().copied().collect()
    }

    /// Returns the keys of one node's records.
    pub(crate) fn keys_of(&self, node: TreeNodeId) -> Vec<Key> {
        let first = Key { node, is_flock: false };
        self.files.range(first..=Key { is_flock: true, ..first }).map(|(key, _)| *key).collect()
    }

    /// Notes a lock request for a file that may be replaced before the release.
    pub(crate) fn asks_of(&mut self, key: Key, owner: u64, id: FileId) {
        let files = self.asked_of.entry((key, owner)).or_default();
        if !files.contains(&id) {
            files.push(id);
        }
    }

    /// Returns the files that an owner has requested locks of, except the node's present file `now`. `is_all`: the
    /// owner holds nothing afterwards.
    pub(crate) fn former_files(
        &mut self,
        key: Key,
        owner: u64,
        now: Option<FileId>,
        is_all: bool,
    ) -> Vec<FileId> {
        let files = match is_all {
            true => self.asked_of.remove(&(key, owner)),
            false => self.asked_of.get(&(key, owner)).cloned(),
        };
        files.into_iter().flatten().filter(|id| Some(*id) != now).collect()
    }

    /// Notes that the last open file of a node was closed, which releases all its locks.
    pub(crate) fn forget_former_files(&mut self, node: TreeNodeId) {
        self.asked_of.retain(|(key, _), _| key.node != node);
    }

    /// Whether a program here holds a lock that conflicts with `wanted`.
    pub(crate) fn is_excluded(&self, key: Key, wanted: LockRange) -> bool {
        self.files.get(&key).is_some_and(|file| file.is_excluded(wanted))
    }

    /// The number of files with a delegated lock, or a requested delegation.
    pub(crate) fn delegated(&self) -> usize {
        self.files.values().filter(|file| !file.is_exact()).count()
    }

    /// Removes the record of a file without held locks or other information.
    pub(crate) fn trim(&mut self, key: Key, now: Time) {
        if self.files.get(&key).is_some_and(|file| file.is_forgettable(now)) {
            self.files.remove(&key);
        }
    }

    /// Notes that the server no longer has any locks of the session.
    pub(crate) fn forget_held(&mut self) {
        self.files.values_mut().for_each(FileLocks::forget_held);
    }
}

#[cfg(test)]
mod tests;
