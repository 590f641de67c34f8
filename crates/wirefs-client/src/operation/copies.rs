//! Private copies: reads, writes and attributes of an open file that has its own copy of the contents.

use crate::call::{Answer, Handle, WriteData};
use crate::core::Client;
use crate::view::files::Private;
use wirefs_cache::TreeNodeId;
use wirefs_op::{Errno, SetStat, Stat};

const SEEK_DATA: u32 = 3;
const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;

/// Answers a read of a copy; `None` where the open file is none.
pub(crate) fn read(client: &Client, handle: Handle, offset: u64, count: u32) -> Option<Answer> {
    let copy = client.view.files.open(handle)?.copy.as_ref()?;
    Some(Answer::Data(copy.read(offset, u64::from(count))))
}

/// Writes into a copy; `None` where the open file is none.
pub(crate) fn write(
    client: &mut Client,
    (node, handle): (TreeNodeId, Handle),
    offset: u64,
    data: WriteData<'_>,
    append: bool,
) -> Option<Result<Answer, Errno>> {
    let size = client.view.files.open(handle)?.copy.as_ref()?.size();
    let offset = if append { size } else { offset };
    let count = data.len() as u64;
    let Some(end) = offset.checked_add(count) else { return Some(Err(Errno::FileTooBig)) };
    if client.view.files.private_bytes() + count > client.view.files.private_bytes_max() {
        return Some(Err(Errno::NoSpace));
    }
    debug_assert!(end >= offset);
    change(client, node, handle, |copy| copy.write(offset, data.to_bytes()));
    Some(Ok(Answer::Count(count as u32)))
}

fn change(client: &mut Client, node: TreeNodeId, handle: Handle, change: impl FnOnce(&mut Private)) {
    if client.view.files.change_copy(handle, change) {
        client.view.files.contents(node).written_by = Some(handle);
    }
}

/// The attributes of a file with a modified copy, for all programs: those of the copy that was written last.
pub(crate) fn shown(client: &Client, node: TreeNodeId, stat: &Stat) -> Option<Stat> {
    let handle = client.view.files.known(node)?.written_by?;
    let copy = client.view.files.open(handle)?.copy.as_ref()?;
    copy.is_changed.then(|| Stat { size: copy.size(), ..*stat })
}

/// Attributes are being set: what concerns the copy is done here. Hands back what is left to be done at the server.
pub(crate) fn set(client: &mut Client, node: TreeNodeId, handle: Option<Handle>, set: SetStat) -> SetStat {
    for open in client.view.files.handles_of(node).collect::<Vec<_>>() {
        if let Some(copy) = client.view.files.open_mut(open).and_then(|open| open.copy.as_mut()) {
            copy.set_times(&set);
        }
    }
    let own = handle.filter(|handle| client.view.files.open(*handle).is_some_and(|open| open.copy.is_some()));
    match (own, set.size) {
        (Some(handle), Some(size)) => {
            change(client, node, handle, |copy| copy.resize(size));
            SetStat { size: None, ..set }
        }
        _ => set,
    }
}

/// Allocates or punches in a copy; `None` where the open file is none.
pub(crate) fn allocate(
    client: &mut Client,
    (node, handle): (TreeNodeId, Handle),
    (offset, length, mode): (u64, u64, u32),
) -> Option<Result<Answer, Errno>> {
    let size = client.view.files.open(handle)?.copy.as_ref()?.size();
    let Some(end) = offset.checked_add(length) else { return Some(Err(Errno::FileTooBig)) };
    match mode {
        0 if end > size => change(client, node, handle, |copy| copy.resize(end)),
        0 | KEEP_SIZE => {}
        _ if mode == PUNCH_HOLE | KEEP_SIZE => change(client, node, handle, |copy| copy.zero(offset, end)),
        _ => return Some(Err(Errno::NotSupported)),
    }
    Some(Ok(Answer::Done))
}

/// Where data or a hole begins in a copy, which is all data; `None` where the open file is none.
pub(crate) fn seek(
    client: &Client,
    handle: Handle,
    offset: u64,
    whence: u32,
) -> Option<Result<Answer, Errno>> {
    let size = client.view.files.open(handle)?.copy.as_ref()?.size();
    Some(match whence {
        _ if offset >= size => Err(Errno::NoSuchDevice),
        SEEK_DATA => Ok(Answer::Offset(offset)),
        _ => Ok(Answer::Offset(size)),
    })
}

/// Whether the open file is a copy.
pub(crate) fn is_copy(client: &Client, handle: Handle) -> bool {
    client.view.files.open(handle).is_some_and(|open| open.copy.is_some())
}

/// A program of this mount took the file's name away: nothing is published there.
pub(crate) fn unnamed(client: &mut Client, node: TreeNodeId) {
    for handle in client.view.files.handles_of(node).collect::<Vec<_>>() {
        if let Some(open) = client.view.files.open_mut(handle) {
            open.opened_by = None;
        }
    }
}
