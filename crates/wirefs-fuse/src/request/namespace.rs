//! Operands of calls on names.

use super::Decoded;
use crate::abi;
use crate::answer::Expects;
use crate::operands::Operands;
use wirefs_client::call::{Call, TreeNodeId};

/// `name`
pub(super) fn lookup(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    Ok((Call::Lookup { parent, name: operands.name()? }, Expects::Lookup))
}

/// `nlookup[8]`
pub(super) fn forget(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    Ok((Call::Forget { node, count: operands.u64()? }, Expects::Nothing))
}

/// `mode[4] rdev[4] umask[4] pad[4] name`
pub(super) fn mknod(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let (mode, rdev, umask) = (operands.u32()?, operands.u32()?, operands.u32()?);
    operands.skip(4)?;
    Ok((Call::Mknod { parent, name: operands.name()?, mode, umask, rdev }, Expects::Entry))
}

/// `mode[4] umask[4] name`
pub(super) fn mkdir(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let (mode, umask) = (operands.u32()?, operands.u32()?);
    Ok((Call::Mkdir { parent, name: operands.name()?, mode, umask }, Expects::Entry))
}

/// `name target`
pub(super) fn symlink(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let (name, target) = (operands.name()?, operands.name()?);
    Ok((Call::Symlink { parent, name, target }, Expects::Entry))
}

pub(super) fn readlink(node: TreeNodeId) -> Decoded<'static> {
    Ok((Call::Readlink { node }, Expects::Data { bytes_max: abi::TARGET_BYTES_MAX }))
}

/// `name`
pub(super) fn unlink(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    Ok((Call::Unlink { parent, name: operands.name()? }, Expects::Done))
}

/// `name`
pub(super) fn rmdir(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    Ok((Call::Rmdir { parent, name: operands.name()? }, Expects::Done))
}

/// `newdir[8] name newname`
pub(super) fn rename(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let to_parent = TreeNodeId(operands.u64()?);
    let (name, to_name) = (operands.name()?, operands.name()?);
    Ok((Call::Rename { parent, name, to_parent, to_name, flags: 0 }, Expects::Done))
}

/// `newdir[8] flags[4] pad[4] name newname`
pub(super) fn rename2(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let to_parent = TreeNodeId(operands.u64()?);
    let flags = operands.u32()?;
    operands.skip(4)?;
    let (name, to_name) = (operands.name()?, operands.name()?);
    Ok((Call::Rename { parent, name, to_parent, to_name, flags }, Expects::Done))
}

/// `oldnode[8] newname`; the header has the new directory.
pub(super) fn link(parent: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    let node = TreeNodeId(operands.u64()?);
    Ok((Call::Link { node, parent, name: operands.name()? }, Expects::Entry))
}
