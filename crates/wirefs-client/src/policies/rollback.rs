//! Rollback journals of databases: files whose syncs need no wait, because a barrier keeps later writes from overtaking
//! them.
//!
//! Before SQLite changes its database, it writes the old contents to a journal beside it, and syncs the journal. This
//! sync only has to ensure an order: the journal must be on the disk before the database is changed. A barrier
//! ([`operation::barrier`](crate::operation::barrier)) ensures that order at the server, so the program need not wait
//! here.
//!
//! ```text
//!   unknown   nothing is known of the journal's contents               each sync waits
//!     |                               ^
//!     |  a header is written          |  the journal is truncated, or its header overwritten;
//!     v                               |  the connection is lost; the session is no longer exclusive
//!   begun     it has a transaction that is not committed               a sync with the database locked: a barrier, no wait
//! ```
//! With `journal_mode` TRUNCATE or PERSIST, SQLite commits a transaction by truncating the journal, or overwriting its
//! header with zeros, and then syncing it. That sync waits for the server's disk.
//!
//! # Source
//! The format of rollback journals: <https://sqlite.org/fileformat2.html>, section 3; locks: `src/os.h` of SQLite.

use crate::requests::Requests;
use crate::view::View;
use crate::view::rollback::{BEGUN_MAX, SUFFIX, begins};
use wirefs_cache::TreeNodeId;
use wirefs_op::message::put::PutMode;
use wirefs_op::{FileId, LockFamily, LockKind, LockRange, Request};

/// Bytes of a database that a process locks before it writes, and while it writes and excludes readers.
const RESERVED: u64 = 0x4000_0001;

const EXCLUSIVE: u64 = 0x4000_0002;

impl View {
    /// A request is about to be sent.
    pub(crate) fn watch_rollback(&mut self, request: &Request) {
        let (id, put) = match request {
            Request::Put(put) if put.mode.has(PutMode::CREATE) => {
                // A file that is there already is cut with it.
                if put.mode.has(PutMode::STAT) && put.set.size.is_some() {
                    self.exclusive.rollback.forget();
                }
                return;
            }
            Request::Put(put) if put.mode.has(PutMode::DATA) && !put.mode.has(PutMode::APPEND) => {
                (put.target.id, Some(put))
            }
            Request::Put(put) if put.mode.has(PutMode::APPEND) || put.set.size.is_some() => {
                (put.target.id, None)
            }
            Request::Allocate(allocate) => (allocate.target.id, None),
            Request::Copy(copy) => (copy.to.id, None),
            _ => return,
        };
        let Some(node) = id.and_then(|id: FileId| self.names.of_file(id)) else {
            return self.exclusive.rollback.forget();
        };
        let is_begun = self.exclusive.rollback.begun.contains(&node);
        if !put.is_some_and(|put| begins(put, is_begun)) {
            self.exclusive.rollback.begun.remove(&node);
        } else if !is_begun && self.database_of(node).is_some() {
            if self.exclusive.rollback.begun.len() >= BEGUN_MAX {
                self.exclusive.rollback.forget();
            }
            self.exclusive.rollback.begun.insert(node);
        }
    }

    /// Returns the database whose journal a file is, by the file's only name.
    fn database_of(&self, node: TreeNodeId) -> Option<TreeNodeId> {
        let [(parent, name)] = self.names.links(node).try_into().ok()?;
        let name: Vec<u8> = name;
        let of = name.strip_suffix(SUFFIX)?;
        self.names.child(parent, of)
    }

    /// If a sync of this journal only has to order later writes after it, returns the database that these writes go to.
    pub(crate) fn orders_for(&mut self, requests: &Requests, node: TreeNodeId) -> Option<TreeNodeId> {
        if !self.mount.attachment.has_barriers
            || !self.may_be_ahead(requests)
            || !self.exclusive.rollback.begun.contains(&node)
        {
            return None;
        }
        let database = self.database_of(node)?;
        let key = crate::view::locks::Locks::key(database, LockFamily::Posix);
        let is_held = |byte| {
            let wanted = LockRange { kind: LockKind::Read, start: byte, end: byte, pid: 0 };
            self.locks.is_excluded(key, wanted)
        };
        (is_held(RESERVED) && is_held(EXCLUSIVE)).then_some(database)
    }

    /// The same for a sync of a directory in which only this name has changed since its last sync. Returns the journal
    /// and the database.
    pub(crate) fn orders_name(
        &mut self,
        requests: &Requests,
        dir: TreeNodeId,
        name: &[u8],
    ) -> Option<(TreeNodeId, TreeNodeId)> {
        let journal = self.names.child(dir, name)?;
        Some((journal, self.orders_for(requests, journal)?))
    }
}
