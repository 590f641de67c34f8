//! Lock: the locks of one stream, which end with it.

use crate::convert::{attributes, id_of};
use crate::node::{Node, Tree};
use crate::open_file::OpenFile;
use crate::proto;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use wirefs_op::lock_ranges::LockRanges;
use wirefs_op::{Errno, FileId, LockFamily, LockKind, LockRange};

/// The files of one stream that are open for locks, at most.
const FILES_MAX: usize = 4096;
/// The owners that hold locks of one file in one stream, at most.
const OWNERS_MAX: usize = 4096;

/// The locks of one stream. Dropping it releases them.
pub(crate) struct LockHolder {
    tree: Tree,
    /// Makes the owners of this stream others than those of each other stream.
    hasher: RandomState,
    /// The files with locks.
    files: BTreeMap<FileId, LockedFile>,
}

struct LockedFile {
    // Closed before the node is given back.
    open: OpenFile,
    node: Node,
    /// The locks of each owner that has any.
    owners: BTreeMap<(u64, LockFamilyKey), LockRanges>,
}

/// A family as the key of a set.
type LockFamilyKey = u8;

impl Drop for LockedFile {
    fn drop(&mut self) {
        for (owner, family) in self.owners.keys() {
            // A lock that cannot be released goes with the gate's session.
            let _kept = self.open.lock(*owner, family_of_key(*family), everything());
        }
    }
}

fn everything() -> LockRange {
    LockRange { kind: LockKind::Unlock, start: 0, end: u64::MAX, pid: 0 }
}

fn family_of_key(key: LockFamilyKey) -> LockFamily {
    if key == LockFamily::Flock as u8 { LockFamily::Flock } else { LockFamily::Posix }
}

fn range_of(request: &proto::LockRequest) -> Result<LockRange, Errno> {
    let kind = match request.kind() {
        proto::LockKind::Shared => LockKind::Read,
        proto::LockKind::Exclusive => LockKind::Write,
        proto::LockKind::Unlock => LockKind::Unlock,
    };
    let (start, end) = match (request.family(), request.length) {
        (proto::LockFamily::Flock, _) => (0, u64::MAX),
        (proto::LockFamily::Posix, 0) => (request.start, u64::MAX),
        (proto::LockFamily::Posix, length) => {
            (request.start, request.start.checked_add(length - 1).ok_or(Errno::Overflow)?)
        }
    };
    Ok(LockRange { kind, start, end, pid: 0 })
}

impl LockHolder {
    pub(crate) fn new(tree: Tree) -> LockHolder {
        LockHolder { tree, hasher: RandomState::new(), files: BTreeMap::new() }
    }

    /// Takes, releases or tests a lock.
    pub(crate) fn answer(&mut self, request: &proto::LockRequest) -> proto::LockReply {
        match self.carry_out(request) {
            Ok(reply) => reply,
            Err(Errno::WouldBlock | Errno::AccessDenied) => proto::LockReply::default(),
            Err(errno) => proto::LockReply { errno: errno.code().into(), ..proto::LockReply::default() },
        }
    }

    fn carry_out(&mut self, request: &proto::LockRequest) -> Result<proto::LockReply, Errno> {
        let range = range_of(request)?;
        let family = match request.family() {
            proto::LockFamily::Posix => LockFamily::Posix,
            proto::LockFamily::Flock => LockFamily::Flock,
        };
        let owner = self.hasher.hash_one(request.owner);
        let (id, mut file) = self.take_file(request)?;
        let outcome = match request.test {
            true => file.test(owner, family, range),
            false => file.lock(owner, family, range).and_then(|()| {
                let found = Some(attributes(&self.tree.stat(file.node.id)?));
                Ok(proto::LockReply { granted: true, attributes: found, ..proto::LockReply::default() })
            }),
        };
        if !file.owners.is_empty() {
            self.files.insert(id, file);
        }
        outcome
    }

    /// The file of a request: one with locks, wherever it is now, or one that is opened.
    fn take_file(&mut self, request: &proto::LockRequest) -> Result<(FileId, LockedFile), Errno> {
        let named = request.object.as_ref().map(id_of);
        if let Some(found) = named.and_then(|id| self.files.remove_entry(&id)) {
            return Ok(found);
        }
        let node = self.tree.find_object(&request.path, request.object.as_ref())?;
        if let Some(found) = self.files.remove_entry(&node.stat.id) {
            return Ok(found);
        }
        if self.files.len() >= FILES_MAX {
            return Err(Errno::NoLocks);
        }
        let open = OpenFile::open_to_lock(&self.tree, &node)?;
        Ok((node.stat.id, LockedFile { open, node, owners: BTreeMap::new() }))
    }
}

impl LockedFile {
    fn test(&self, owner: u64, family: LockFamily, range: LockRange) -> Result<proto::LockReply, Errno> {
        Ok(match self.open.conflict(owner, family, range)? {
            None => proto::LockReply { granted: true, ..proto::LockReply::default() },
            Some(found) => conflict(found),
        })
    }

    fn lock(&mut self, owner: u64, family: LockFamily, range: LockRange) -> Result<(), Errno> {
        let key = (owner, family as LockFamilyKey);
        let unlocks = range.kind == LockKind::Unlock;
        if !unlocks && self.owners.len() >= OWNERS_MAX && !self.owners.contains_key(&key) {
            return Err(Errno::NoLocks);
        }
        self.open.lock(owner, family, range)?;
        let mut ranges = self.owners.remove(&key).unwrap_or_default();
        ranges.set(range);
        if !ranges.is_empty() {
            self.owners.insert(key, ranges);
        }
        Ok(())
    }
}

fn conflict(found: LockRange) -> proto::LockReply {
    let kind = match found.kind {
        LockKind::Read => proto::LockKind::Shared,
        LockKind::Write => proto::LockKind::Exclusive,
        LockKind::Unlock => proto::LockKind::Unlock,
    };
    let length = if found.end == u64::MAX { 0 } else { found.end - found.start + 1 };
    proto::LockReply { kind: kind.into(), start: found.start, length, ..proto::LockReply::default() }
}
