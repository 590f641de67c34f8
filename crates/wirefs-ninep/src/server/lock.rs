//! Tlock, Tgetlock: byte-range locks of the client's processes.

use super::NineConversation;
use super::open::OpenKind;
use crate::limits::LOCK_OWNERS_MAX;
use crate::message::{Fid, NineLock, Rmessage};
use wirefs_client::call::{Answer, Call};
use wirefs_op::{Errno, LockFamily, LockKind, LockRange};

const SUCCESS: u8 = 0;
const BLOCKED: u8 = 1;
/// The type of a lock that is none.
const UNLOCK: u8 = 2;

fn range_of(kind: u8, (start, length): (u64, u64), process: u32) -> Result<LockRange, Errno> {
    let kind = match kind {
        0 => LockKind::Read,
        1 => LockKind::Write,
        UNLOCK => LockKind::Unlock,
        _ => return Err(Errno::Invalid),
    };
    let end = match length {
        0 => u64::MAX,
        length => start.checked_add(length - 1).ok_or(Errno::Overflow)?,
    };
    Ok(LockRange { kind, start, end, pid: process })
}

impl NineConversation {
    /// The owner of a lock: a process of this client.
    fn owner(&self, process: u32) -> u64 {
        (u64::from(self.number) << 32) | u64::from(process)
    }

    /// Tries. A client that is ready to wait is told that the lock is taken, and asks again, as 9P2000.L has it.
    pub(super) fn take_lock(
        &self,
        fid: Fid,
        kind: u8,
        extent: (u64, u64),
        process: u32,
    ) -> Result<Rmessage, Errno> {
        let range = range_of(kind, extent, process)?;
        let entry = self.fid(fid)?;
        let opened = entry.opened()?;
        if !matches!(opened.kind, OpenKind::File(_)) {
            return Err(Errno::BadDescriptor);
        }
        let owner = self.owner(process);
        if range.kind != LockKind::Unlock {
            let mut owners = opened.owners();
            if owners.len() >= LOCK_OWNERS_MAX && !owners.contains(&owner) {
                return Err(Errno::NoLocks);
            }
            owners.insert(owner);
        }
        let (node, handle) = (opened.place.node, opened.handle);
        let call = Call::Setlk { node, handle, owner, family: LockFamily::Posix, range, wait: false };
        match self.files.call(entry.caller, call) {
            Answer::Done => Ok(Rmessage::Lock { status: SUCCESS }),
            Answer::Fail(Errno::WouldBlock | Errno::AccessDenied) => Ok(Rmessage::Lock { status: BLOCKED }),
            Answer::Fail(errno) => Err(errno),
            _ => Err(Errno::Io),
        }
    }

    pub(super) fn getlock(&self, fid: Fid, lock: NineLock) -> Result<Rmessage, Errno> {
        let range = range_of(lock.kind, (lock.start, lock.length), lock.process)?;
        let entry = self.fid(fid)?;
        let opened = entry.opened()?;
        let (node, handle, owner) = (opened.place.node, opened.handle, self.owner(lock.process));
        let call = Call::Getlk { node, handle, owner, family: LockFamily::Posix, range };
        let lock = match self.files.call(entry.caller, call) {
            Answer::Lock(None) => NineLock { kind: UNLOCK, ..lock },
            Answer::Lock(Some(found)) => NineLock {
                kind: found.kind as u8,
                start: found.start,
                length: if found.end == u64::MAX { 0 } else { found.end - found.start + 1 },
                process: found.pid,
                client: lock.client,
            },
            Answer::Fail(errno) => return Err(errno),
            _ => return Err(Errno::Io),
        };
        Ok(Rmessage::Getlock { lock })
    }
}
