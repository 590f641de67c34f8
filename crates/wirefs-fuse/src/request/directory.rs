//! Operands of calls on open directories.

use super::Decoded;
use super::file::sync_operands;
use crate::abi;
use crate::answer::Expects;
use crate::operands::Operands;
use wirefs_client::call::{Call, Handle, TreeNodeId};

/// `fh[8] offset[8] size[4]`, as READ.
pub(super) fn readdir(node: TreeNodeId, mut operands: Operands<'_>, with_stats: bool) -> Decoded<'_> {
    let handle = Handle(operands.u64()?);
    let (offset, bytes_max) = (operands.u64()?, operands.u32()?);
    let entry_bytes = if with_stats { abi::DIRENTPLUS_BYTES } else { abi::DIRENT_BYTES };
    let call = Call::Readdir { node, handle, offset, bytes_max, entry_bytes, with_stats };
    Ok((call, Expects::Listing { bytes_max, with_stats }))
}

/// `fh[8]`, then the fields of RELEASE.
pub(super) fn releasedir(node: TreeNodeId, mut operands: Operands<'_>) -> Decoded<'_> {
    Ok((Call::Releasedir { node, handle: Handle(operands.u64()?) }, Expects::Done))
}

pub(super) fn fsyncdir(node: TreeNodeId, operands: Operands<'_>) -> Decoded<'_> {
    let (handle, data_only) = sync_operands(operands)?;
    Ok((Call::Fsyncdir { node, handle, data_only }, Expects::Done))
}
