//! Operands of the lock calls: `fh[8] owner[8] start[8] end[8] type[4] pid[4] lk_flags[4] pad[4]`.

use super::Decoded;
use crate::abi;
use crate::answer::Expects;
use crate::operands::{InvalidOperands, Operands};
use wirefs_client::call::{Call, Handle, TreeNodeId};
use wirefs_op::{LockFamily, LockKind, LockRange};

struct Lock {
    handle: Handle,
    owner: u64,
    family: LockFamily,
    range: LockRange,
}

fn lock(mut operands: Operands<'_>) -> Result<Lock, InvalidOperands> {
    let handle = Handle(operands.u64()?);
    let owner = operands.u64()?;
    let (start, end) = (operands.u64()?, operands.u64()?);
    let kind = match operands.u32()? {
        abi::lock::READ => LockKind::Read,
        abi::lock::WRITE => LockKind::Write,
        abi::lock::UNLOCK => LockKind::Unlock,
        _ => return Err(InvalidOperands),
    };
    let pid = operands.u32()?;
    let flock = operands.u32()? & abi::LOCK_FLOCK != 0;
    if start > end {
        return Err(InvalidOperands);
    }
    let end = if end >= abi::lock::OFFSET_MAX { u64::MAX } else { end };
    let (family, owner) =
        if flock { (LockFamily::Flock, flock_owner(handle)) } else { (LockFamily::Posix, owner) };
    Ok(Lock { handle, owner, family, range: LockRange { kind, start, end, pid } })
}

/// The owner of a `flock` lock: the open file. The kernel sends a hash of the address of its `struct file`
/// (`fuse_lock_owner_id` in `fs/fuse/file.c`). The next open file may have the same address before the RELEASE of
/// this one is read, which would then release its lock.
pub(super) fn flock_owner(handle: Handle) -> u64 {
    handle.0
}

pub(super) fn getlk(node: TreeNodeId, operands: Operands<'_>) -> Decoded<'_> {
    let Lock { handle, owner, family, range } = lock(operands)?;
    Ok((Call::Getlk { node, handle, owner, family, range }, Expects::Lock))
}

pub(super) fn setlk(node: TreeNodeId, operands: Operands<'_>, wait: bool) -> Decoded<'_> {
    let Lock { handle, owner, family, range } = lock(operands)?;
    Ok((Call::Setlk { node, handle, owner, family, range, wait }, Expects::Done))
}
