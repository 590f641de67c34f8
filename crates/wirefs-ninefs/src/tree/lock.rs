//! Tlock: byte-range locks of the server.

use super::{At, Failure};
use crate::remote::{Dialect, WRONG_REPLY};
use wirefs_ninep::message::NineLock;
use wirefs_ninep::text::NineString;
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::{Errno, LockKind, LockRange};
use wirefs_server::Replies;

const SUCCESS: u8 = 0;
const BLOCKED: u8 = 1;
/// The type of a lock that is none.
const UNLOCK: u8 = 2;

fn nine_lock(request: &Tlock) -> NineLock {
    let LockRange { kind, start, end, .. } = request.range;
    NineLock {
        kind: kind as u8,
        start,
        length: if end == u64::MAX { 0 } else { end - start + 1 },
        // Owners of one session differ, and so should these.
        process: (request.owner ^ (request.owner >> 32)) as u32,
        client: NineString::new(b"wirefs"),
    }
}

impl At<'_> {
    pub(super) fn lock(&self, request: &Tlock, replies: &mut dyn Replies) -> Result<Rlock, Failure> {
        if self.remote.dialect == Dialect::Plan {
            return Err(Errno::NotSupported.into());
        }
        // The lock is of the open fid, and goes with it.
        let file = self.client.find(&request.target).ok_or(Errno::BadDescriptor)?;
        let lock = nine_lock(request);
        if request.action == LockAction::Test {
            return self.test_lock(file.own.fid, lock).map_err(Failure::Errno);
        }
        let NineLock { kind, start, length, process, client } = lock;
        let ask = Tmessage::Lock { fid: file.own.fid, kind, flags: 0, start, length, process, client };
        let waits = request.action == LockAction::Wait && request.range.kind != LockKind::Unlock;
        if waits {
            replies.release_slot();
        }
        loop {
            match self.remote.ask(&ask)? {
                Rmessage::Lock { status: SUCCESS } => {
                    let stat = self.remote.stat(file.own.fid)?;
                    return Ok(Rlock { conflict: None, stat: Some(stat) });
                }
                Rmessage::Lock { status: BLOCKED } if waits && replies.is_stopped() => {
                    return Err(Failure::Stopped);
                }
                Rmessage::Lock { status: BLOCKED } if waits => replies.wait(),
                Rmessage::Lock { status: BLOCKED } => return Err(Errno::WouldBlock.into()),
                Rmessage::Lock { .. } => return Err(Errno::NoLocks.into()),
                _ => return Err(WRONG_REPLY.into()),
            }
        }
    }

    fn test_lock(&self, fid: wirefs_ninep::message::Fid, lock: NineLock) -> Result<Rlock, Errno> {
        let Rmessage::Getlock { lock } = self.remote.ask(&Tmessage::Getlock { fid, lock })? else {
            return Err(WRONG_REPLY);
        };
        let kind = match lock.kind {
            0 => LockKind::Read,
            1 => LockKind::Write,
            UNLOCK => return Ok(Rlock { conflict: None, stat: None }),
            _ => return Err(WRONG_REPLY),
        };
        let end = match lock.length {
            0 => u64::MAX,
            length => lock.start.checked_add(length - 1).ok_or(WRONG_REPLY)?,
        };
        Ok(Rlock {
            conflict: Some(LockRange { kind, start: lock.start, end, pid: lock.process }),
            stat: None,
        })
    }
}
