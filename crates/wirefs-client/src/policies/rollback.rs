//! Rollback journals of databases: files whose syncs need not be waited for, as long as nothing overtakes them.
//!
//! SQLite writes what its database has to a journal beside it, brings that to the disk, and only then writes to the database. So the sync
//! of a journal promises nobody anything: it says that the database comes later. Where what comes behind a barrier in the line waits
//! for it at the server ([`operation::barrier`](crate::operation::barrier)), that is so without a wait here.
//!
//! ```text
//!   unknown   the journal's contents say nothing                             each sync waits
//!     |  a header is written to its beginning        ^
//!     v                                              |  cut; its header is overwritten; the connection is lost; others are there
//!   begun     a transaction is in it, which is not committed               a sync while its database is locked orders, and does not wait
//! ```
//! With `journal_mode` TRUNCATE and PERSIST a transaction is committed by the journal being cut, or its header overwritten with zeros, and
//! a sync behind that: it waits.
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

    /// The database that a file is the journal of, going by its one name.
    fn database_of(&self, node: TreeNodeId) -> Option<TreeNodeId> {
        let [(parent, name)] = self.names.links(node).try_into().ok()?;
        let name: Vec<u8> = name;
        let of = name.strip_suffix(SUFFIX)?;
        self.names.child(parent, of)
    }

    /// Whether a sync of this file only says that what is written later is to come later: the database that must wait for it.
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

    /// The same of a directory in which no other name has changed than this one, since the server's disk has it.
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
