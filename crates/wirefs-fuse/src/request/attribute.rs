//! Operands of calls on attributes and extended attributes.

use super::{Decoded, Dialect};
use crate::abi::{self, setattr as valid_bit};
use crate::answer::Expects;
use crate::operands::{InvalidOperands, Operands};
use wirefs_client::call::{Call, Handle, TreeNodeId};
use wirefs_op::{SetStat, SetTime, Timestamp};

/// `flags[4] pad[4] fh[8]`; STATX has further fields, which are not needed when all basic attributes are answered.
pub(super) fn getattr(node: TreeNodeId, mut operands: Operands<'_>, expects: Expects) -> Decoded<'_> {
    let flags = operands.u32()?;
    operands.skip(4)?;
    let handle = Handle(operands.u64()?);
    let handle = (flags & abi::GETATTR_HANDLE != 0).then_some(handle);
    Ok((Call::Getattr { node, handle }, expects))
}

/// `valid[4] pad[4] fh[8] size[8] lock_owner[8] atime[8] mtime[8] ctime[8] atimensec[4] mtimensec[4] ctimensec[4]
/// mode[4] unused[4] uid[4] gid[4] unused[4]`. The change time is only sent with a write-back cache, which is not
/// used.
pub(super) fn setattr(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let valid = operands.u32()?;
    operands.skip(4)?;
    let handle = Handle(operands.u64()?);
    let size = operands.u64()?;
    operands.skip(8)?;
    let (atime, mtime) = (operands.u64()?, operands.u64()?);
    operands.skip(8)?;
    let (atime_nanos, mtime_nanos) = (operands.u32()?, operands.u32()?);
    operands.skip(4)?;
    let mode = operands.u32()?;
    operands.skip(4)?;
    let (uid, gid) = (operands.u32()?, operands.u32()?);
    operands.skip(4)?;
    let has = |bit: u32| valid & bit != 0;
    let set = SetStat {
        mode: has(valid_bit::MODE).then_some(mode & 0o7777),
        uid: has(valid_bit::UID).then_some(uid),
        gid: has(valid_bit::GID).then_some(gid),
        size: has(valid_bit::SIZE).then_some(size),
        atime: set_time(has(valid_bit::ATIME), has(valid_bit::ATIME_NOW), atime, atime_nanos)?,
        mtime: set_time(has(valid_bit::MTIME), has(valid_bit::MTIME_NOW), mtime, mtime_nanos)?,
    };
    let handle = has(valid_bit::HANDLE).then_some(handle);
    let kill_privileges = has(valid_bit::KILL_SUIDGID);
    Ok((Call::Setattr { node, handle, set, kill_privileges }, Expects::Attr))
}

fn set_time(given: bool, now: bool, secs: u64, nanos: u32) -> Result<Option<SetTime>, InvalidOperands> {
    if !given {
        return Ok(None);
    }
    if now {
        return Ok(Some(SetTime::Now));
    }
    if nanos >= 1_000_000_000 {
        return Err(InvalidOperands);
    }
    Ok(Some(SetTime::At(Timestamp { secs: secs.cast_signed(), nanos })))
}

/// `mask[4] pad[4]`
pub(super) fn access(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    Ok((Call::Access { node, mask: operands.u32()? }, Expects::Done))
}

/// `size[4] flags[4] name value[size]`; in the longer form `setxattr_flags[4] pad[4]` before the name.
pub(super) fn setxattr(node: TreeNodeId, mut operands: Operands<'_>, dialect: Dialect) -> Decoded<'_> {
    let size = usize::try_from(operands.u32()?).map_err(|_| InvalidOperands)?;
    let flags = operands.u32()?;
    let mut kill_sgid = false;
    if dialect.setxattr_ext {
        kill_sgid = operands.u32()? & abi::SETXATTR_KILL_SGID != 0;
        operands.skip(4)?;
    }
    let name = operands.name()?;
    let value = operands.bytes(size)?;
    Ok((Call::Setxattr { node, name, value, flags, kill_sgid }, Expects::Done))
}

/// `size[4] pad[4] name`
pub(super) fn getxattr(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let size_max = operands.u32()?;
    operands.skip(4)?;
    Ok((Call::Getxattr { node, name: operands.name()?, size_max }, Expects::Xattr { size_max }))
}

/// `size[4] pad[4]`
pub(super) fn listxattr(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let size_max = operands.u32()?;
    Ok((Call::Listxattr { node, size_max }, Expects::Xattr { size_max }))
}

/// `name`
pub(super) fn removexattr(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    Ok((Call::Removexattr { node, name: operands.name()? }, Expects::Done))
}
