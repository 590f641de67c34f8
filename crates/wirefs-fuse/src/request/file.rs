//! Operands of calls on open files.

use super::{Decoded, lock};
use crate::abi;
use crate::answer::Expects;
use crate::operands::{InvalidOperands, Operands};
use rustix::fs::OFlags;
use wirefs_client::call::{Call, Handle, OpenHow, TreeNodeId, WriteData};

/// The flags of `open(2)`. Both access bits at once (only for ioctl, needs both permissions) count as read and
/// write.
fn open_how(flags: u32) -> OpenHow {
    let flags = OFlags::from_bits_retain(flags);
    let access = flags & OFlags::RWMODE;
    OpenHow {
        read: access != OFlags::WRONLY,
        write: access != OFlags::RDONLY,
        append: flags.contains(OFlags::APPEND),
        truncate: flags.contains(OFlags::TRUNC),
        exclusive: flags.contains(OFlags::EXCL),
        direct: flags.contains(OFlags::DIRECT),
        sync: flags.intersects(OFlags::SYNC | OFlags::DSYNC),
    }
}

/// `flags[4] open_flags[4]`
pub(super) fn open(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    Ok((Call::Open { node, how: open_how(operands.u32()?) }, Expects::Opened))
}

/// `flags[4] mode[4] umask[4] open_flags[4] name`
pub(super) fn create(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let how = open_how(operands.u32()?);
    let (mode, umask) = (operands.u32()?, operands.u32()?);
    operands.skip(4)?;
    Ok((Call::Create { parent, name: operands.name()?, mode, umask, how }, Expects::Created))
}

/// As CREATE; the name is a placeholder.
pub(super) fn tmpfile(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let how = open_how(operands.u32()?);
    let (mode, umask) = (operands.u32()?, operands.u32()?);
    Ok((Call::Tmpfile { parent, mode, umask, how }, Expects::Created))
}

/// `fh[8] offset[8] size[4]`, then flags and lock owner.
pub(super) fn read(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let handle = Handle(operands.u64()?);
    let (offset, count) = (operands.u64()?, operands.u32()?);
    Ok((Call::Read { node, handle, offset, count }, Expects::Data { bytes_max: count }))
}

/// `fh[8] offset[8] size[4] write_flags[4] lock_owner[8] flags[4] pad[4]`, then `size` bytes of data.
pub(super) fn write<'a>(node: TreeNodeId, mut operands: Operands<'_>, data: WriteData<'a>) -> Decoded<'a> {
    let handle = Handle(operands.u64()?);
    let offset = operands.u64()?;
    let size = usize::try_from(operands.u32()?).map_err(|_| InvalidOperands)?;
    let flags = operands.u32()?;
    operands.skip(16)?;
    if data.len() != size {
        return Err(InvalidOperands);
    }
    let cached = flags & abi::WRITE_CACHE != 0;
    let kill_privileges = flags & abi::WRITE_KILL_SUIDGID != 0;
    Ok((Call::Write { node, handle, offset, data, cached, kill_privileges }, Expects::Count))
}

/// `fh[8] unused[4] pad[4] lock_owner[8]`
pub(super) fn flush(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let handle = Handle(operands.u64()?);
    operands.skip(8)?;
    Ok((Call::Flush { node, handle, owner: operands.u64()? }, Expects::Done))
}

/// `fh[8] flags[4] release_flags[4] lock_owner[8]`
pub(super) fn release(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let handle = Handle(operands.u64()?);
    operands.skip(4)?;
    let flags = operands.u32()?;
    operands.skip(8)?;
    let flock_owner = (flags & abi::RELEASE_FLOCK_UNLOCK != 0).then(|| lock::flock_owner(handle));
    Ok((Call::Release { node, handle, flock_owner }, Expects::Done))
}

pub(super) fn fsync(node: TreeNodeId, operands: Operands<'_>) -> Decoded<'_> {
    let (handle, data_only) = sync_operands(operands)?;
    Ok((Call::Fsync { node, handle, data_only }, Expects::Done))
}

/// `fh[8] offset[8] length[8] mode[4]`
pub(super) fn fallocate(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let handle = Handle(operands.u64()?);
    let (offset, length, mode) = (operands.u64()?, operands.u64()?, operands.u32()?);
    Ok((Call::Fallocate { node, handle, offset, length, mode }, Expects::Done))
}

/// `fh[8] offset[8] whence[4]`
pub(super) fn lseek(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let handle = Handle(operands.u64()?);
    let (offset, whence) = (operands.u64()?, operands.u32()?);
    Ok((Call::Lseek { node, handle, offset, whence }, Expects::Offset))
}

/// `fh_in[8] off_in[8] nodeid_out[8] fh_out[8] off_out[8] len[8] flags[8]`; no flag is defined.
pub(super) fn copy_range(from: TreeNodeId, mut operands: Operands<'_>, expects: Expects) -> Decoded<'_> {
    let call = Call::CopyRange {
        from,
        from_handle: Handle(operands.u64()?),
        from_offset: operands.u64()?,
        to: TreeNodeId(operands.u64()?),
        to_handle: Handle(operands.u64()?),
        to_offset: operands.u64()?,
        length: operands.u64()?,
    };
    if operands.u64()? != 0 {
        return Err(InvalidOperands);
    }
    Ok((call, expects))
}

/// `fh[8] fsync_flags[4] pad[4]` of FSYNC and FSYNCDIR: the handle, and whether only data is synced.
pub(super) fn sync_operands(mut operands: Operands<'_>) -> Result<(Handle, bool), InvalidOperands> {
    let handle = Handle(operands.u64()?);
    Ok((handle, operands.u32()? & abi::FSYNC_DATA_ONLY != 0))
}
