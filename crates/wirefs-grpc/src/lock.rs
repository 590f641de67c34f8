//! Lock: the locks of one stream, which end with it.

use crate::convert::{attributes, identity};
use crate::node::{Node, Tree};
use crate::open_file::OpenFile;
use crate::proto;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use wirefs_op::{Errno, LockFamily, LockKind, LockRange};

/// The files of one stream that are open for locks, at most.
const FILES_MAX: usize = 4096;
/// The owners that hold locks of one file in one stream, at most.
const OWNERS_MAX: usize = 4096;

/// The locks of one stream. Dropping it releases them.
pub(crate) struct LockHolder {
    tree: Tree,
    /// Makes the owners of this stream others than those of each other stream.
    hasher: RandomState,
    files: BTreeMap<(u32, u64, u32), LockedFile>,
}

struct LockedFile {
    // Closed before the node is given back.
    open: OpenFile,
    node: Node,
    owners: BTreeSet<(u64, LockFamilyKey)>,
}

/// A family as the key of a set.
type LockFamilyKey = u8;

impl Drop for LockedFile {
    fn drop(&mut self) {
        for (owner, family) in &self.owners {
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
    let end = match request.length {
        0 => u64::MAX,
        length => request.start.checked_add(length - 1).ok_or(Errno::Overflow)?,
    };
    Ok(LockRange { kind, start: request.start, end, pid: 0 })
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
        let tree = self.tree.clone();
        let file = self.file(request)?;
        if request.test {
            return Ok(match file.open.conflict(owner, family, range)? {
                None => proto::LockReply { granted: true, ..proto::LockReply::default() },
                Some(found) => conflict(found),
            });
        }
        let key = (owner, family as LockFamilyKey);
        if range.kind != LockKind::Unlock && file.owners.len() >= OWNERS_MAX && !file.owners.contains(&key) {
            return Err(Errno::NoLocks);
        }
        file.open.lock(owner, family, range)?;
        if range.kind != LockKind::Unlock {
            file.owners.insert(key);
        }
        let found = Some(attributes(&tree.stat(file.node.id)?));
        Ok(proto::LockReply { granted: true, attributes: found, ..proto::LockReply::default() })
    }

    /// The file of a request: one that is open, wherever it is now, or one that is opened.
    fn file(&mut self, request: &proto::LockRequest) -> Result<&mut LockedFile, Errno> {
        let key = |id: &proto::Identity| (id.file_system, id.inode, id.generation);
        if let Some(object) = &request.object
            && self.files.contains_key(&key(object))
        {
            return self.files.get_mut(&key(object)).ok_or(Errno::Io);
        }
        let node = self.tree.find_object(&request.path, request.object.as_ref())?;
        let key = key(&identity(node.stat.id));
        if !self.files.contains_key(&key) {
            if self.files.len() >= FILES_MAX {
                return Err(Errno::NoLocks);
            }
            let open = OpenFile::open_to_lock(&self.tree, &node)?;
            self.files.insert(key, LockedFile { open, node, owners: BTreeSet::new() });
        }
        self.files.get_mut(&key).ok_or(Errno::Io)
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
