//! Open files that are copies of their own: fetched whole at open, read and written here, put in the place of the file at close.

use crate::call::{Answer, CallId, Handle, PageCache, WriteData};
use crate::core::Client;
use crate::files::{Drained, Opens, Private, Reader};
use crate::operation::{fetch, publish, release};
use crate::pending::AfterPublishing;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::{Errno, SetStat, Stat, Time};

/// How often an open begins anew when others change the file meanwhile.
const TRIES_MAX: u8 = 16;

const SEEK_DATA: u32 = 3;
const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;

/// The server let the file be opened, by a request sent at `sent`: what it holds has to be here before its caller goes on.
pub(crate) fn opened(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    (cuts, sent): (bool, Time),
) {
    if cuts {
        let from = client.names.node(node).map(|known| known.stat);
        client.files.set_copy(handle, Private::cut(), from.as_ref());
        return client.answer(call, Answer::Opened(handle, PageCache::Bypass));
    }
    let opening =
        Reader { call, handle, start: 0, end: 0, since: sent, tries: 0, opens: Some(Opens::Fetching) };
    go_on(client, node, opening);
}

/// Hands the open its copy, or asks for what is missing.
pub(crate) fn go_on(client: &mut Client, node: TreeNodeId, mut opening: Reader) {
    if client.files.is_writing(node) {
        return client.files.contents(node).drained.push(Drained::Open(opening));
    }
    if come(client, node, &mut opening) {
        return;
    }
    let (handle, call, range) = (opening.handle, opening.call, (0, opening.end));
    client.files.contents(node).readers.push(opening);
    if let Err(errno) = fetch::ask(client, node, handle, range, true) {
        client.files.contents(node).readers.retain(|reader| reader.call != call);
        failed(client, &opening, errno);
    }
}

/// Tells whether the open is answered.
pub(crate) fn come(client: &mut Client, node: TreeNodeId, opening: &mut Reader) -> bool {
    let size = client.names.node(node).map_or(0, |known| known.stat.size);
    opening.end = size;
    if let Err(errno) = has_room(client, size) {
        failed(client, opening, errno);
        return true;
    }
    let is_valid = |valid: Freshness| valid.at >= opening.since;
    let whole = client.files.known(node).filter(|contents| contents.ranges.cached_to(0, size) >= size);
    let Some(whole) = whole else {
        opening.opens = Some(Opens::Fetching);
        return false;
    };
    let (ranges, is_valid) = (whole.ranges.clone(), whole.valid.is_some_and(is_valid));
    let is_fetched = opening.opens == Some(Opens::Fetching);
    // What came in several messages may be of several versions: it was one throughout if it still is.
    if is_valid && is_fetched && size > DATA_BYTES_MAX as u64 {
        (opening.opens, opening.since) = (Some(Opens::Confirming), client.now);
        return false;
    }
    if !is_valid {
        return false;
    }
    let from = client.names.node(node).map(|known| known.stat);
    client.files.set_copy(opening.handle, Private::new(ranges, size), from.as_ref());
    client.answer(opening.call, Answer::Opened(opening.handle, PageCache::Bypass));
    true
}

fn has_room(client: &Client, size: u64) -> Result<(), Errno> {
    let most = client.files.private_bytes_max();
    match size {
        _ if size > most => Err(Errno::FileTooBig),
        _ if size + client.files.private_bytes() > most => Err(Errno::NoMemory),
        _ => Ok(()),
    }
}

/// Others change the file faster than it comes; or not.
pub(crate) fn may_try_again(opening: &mut Reader) -> bool {
    opening.tries += 1;
    opening.tries <= TRIES_MAX
}

/// The open comes to nothing.
pub(crate) fn failed(client: &mut Client, opening: &Reader, errno: Errno) {
    release::forget(client, opening.handle);
    client.fail(opening.call, errno);
}

/// Answers a read of a copy; `None` where the open file is none.
pub(crate) fn read(client: &Client, handle: Handle, offset: u64, count: u32) -> Option<Answer> {
    let copy = client.files.open(handle)?.copy.as_ref()?;
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
    let size = client.files.open(handle)?.copy.as_ref()?.size();
    let offset = if append { size } else { offset };
    let count = data.len() as u64;
    let Some(end) = offset.checked_add(count) else { return Some(Err(Errno::FileTooBig)) };
    if client.files.private_bytes() + count > client.files.private_bytes_max() {
        return Some(Err(Errno::NoSpace));
    }
    debug_assert!(end >= offset);
    change(client, node, handle, |copy| copy.write(offset, data.to_bytes()));
    Some(Ok(Answer::Count(count as u32)))
}

fn change(client: &mut Client, node: TreeNodeId, handle: Handle, change: impl FnOnce(&mut Private)) {
    if client.files.change_copy(handle, change) {
        client.files.contents(node).written_by = Some(handle);
    }
}

/// What programs see of a file of which there is a changed copy, whoever looks: the one that was written last.
pub(crate) fn shown(client: &Client, node: TreeNodeId, stat: &Stat) -> Option<Stat> {
    let handle = client.files.known(node)?.written_by?;
    let copy = client.files.open(handle)?.copy.as_ref()?;
    copy.is_changed.then(|| Stat { size: copy.size(), ..*stat })
}

/// Attributes are being set: what concerns the copy is done here. Hands back what is left to be done at the server.
pub(crate) fn set(client: &mut Client, node: TreeNodeId, handle: Option<Handle>, set: SetStat) -> SetStat {
    for open in client.files.handles_of(node).collect::<Vec<_>>() {
        if let Some(copy) = client.files.open_mut(open).and_then(|open| open.copy.as_mut()) {
            copy.set_times(&set);
        }
    }
    let own = handle.filter(|handle| client.files.open(*handle).is_some_and(|open| open.copy.is_some()));
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
    let size = client.files.open(handle)?.copy.as_ref()?.size();
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
    let size = client.files.open(handle)?.copy.as_ref()?.size();
    Some(match whence {
        _ if offset >= size => Err(Errno::NoSuchDevice),
        SEEK_DATA => Ok(Answer::Offset(offset)),
        _ => Ok(Answer::Offset(size)),
    })
}

/// Whether the open file is a copy.
pub(crate) fn is_copy(client: &Client, handle: Handle) -> bool {
    client.files.open(handle).is_some_and(|open| open.copy.is_some())
}

/// A program of this mount took the file's name away: nothing is published there.
pub(crate) fn unnamed(client: &mut Client, node: TreeNodeId) {
    for handle in client.files.handles_of(node).collect::<Vec<_>>() {
        if let Some(open) = client.files.open_mut(handle) {
            open.opened_by = None;
        }
    }
}

/// Publishes what was changed in a copy; false where there is nothing to publish.
pub(crate) fn publish(client: &mut Client, node: TreeNodeId, handle: Handle, then: AfterPublishing) -> bool {
    let copy = client.files.open_mut(handle).and_then(|open| open.copy.as_mut());
    let Some(copy) = copy.filter(|copy| copy.is_changed) else { return false };
    copy.is_changed = false;
    let copy = copy.clone();
    publish::start(client, node, handle, copy, then);
    true
}
