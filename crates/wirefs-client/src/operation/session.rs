//! Open files of mode `session`, each with a private copy: fetched whole at open, read and written here, and published
//! at close.

use crate::call::{Answer, CallId, Handle, PageCache};
use crate::core::Client;
use crate::operation::{fetch, handles, publish};
use crate::sending::Sender;
use crate::view::View;
use crate::view::files::{Drained, Opens, Private, Reader};
use crate::view::publications::AfterPublishing;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::{Errno, Time};

/// How often an open begins anew when others change the file meanwhile.
const TRIES_MAX: u8 = 16;

/// The server let the file be opened, by a request sent at `sent`: what it holds has to be here before its caller goes on.
pub(crate) fn opened(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    (cuts, sent): (bool, Time),
) {
    if cuts {
        let from = client.view.names.node(node).map(|known| known.stat);
        client.view.files.set_copy(handle, Private::cut(), from.as_ref());
        return client.answerer().answer(call, Answer::Opened(handle, PageCache::Bypass));
    }
    let opening =
        Reader { call, handle, start: 0, end: 0, since: sent, tries: 0, opens: Some(Opens::Fetching) };
    go_on(client, node, opening);
}

/// Hands the open its copy, or asks for what is missing.
pub(crate) fn go_on(client: &mut Client, node: TreeNodeId, mut opening: Reader) {
    if client.view.files.is_writing(node) {
        return client.view.files.contents(node).drained.push(Drained::Open(opening));
    }
    if come(client, node, &mut opening) {
        return;
    }
    let (handle, call, range) = (opening.handle, opening.call, (0, opening.end));
    client.view.files.contents(node).readers.push(opening);
    if let Err(errno) = fetch::ask(&mut client.sender(), node, handle, range, true) {
        client.view.files.contents(node).readers.retain(|reader| reader.call != call);
        failed(client, &opening, errno);
    }
}

/// Tells whether the open is answered.
pub(crate) fn come(client: &mut Client, node: TreeNodeId, opening: &mut Reader) -> bool {
    let size = client.view.names.node(node).map_or(0, |known| known.stat.size);
    opening.end = size;
    if let Err(errno) = has_room(&client.view, size) {
        failed(client, opening, errno);
        return true;
    }
    let is_valid = |valid: Freshness| valid.at >= opening.since;
    let whole = client.view.files.known(node).filter(|contents| contents.ranges.cached_to(0, size) >= size);
    let Some(whole) = whole else {
        opening.opens = Some(Opens::Fetching);
        return false;
    };
    let (ranges, is_valid) = (whole.ranges.clone(), whole.valid.is_some_and(is_valid));
    let is_fetched = opening.opens == Some(Opens::Fetching);
    // What came in several messages may be of several versions: it was one throughout if it still is.
    if is_valid && is_fetched && size > DATA_BYTES_MAX as u64 {
        (opening.opens, opening.since) = (Some(Opens::Confirming), client.view.mount.now);
        return false;
    }
    if !is_valid {
        return false;
    }
    let from = client.view.names.node(node).map(|known| known.stat);
    client.view.files.set_copy(opening.handle, Private::new(ranges, size), from.as_ref());
    client.answerer().answer(opening.call, Answer::Opened(opening.handle, PageCache::Bypass));
    true
}

fn has_room(view: &View, size: u64) -> Result<(), Errno> {
    let most = view.files.private_bytes_max();
    match size {
        _ if size > most => Err(Errno::FileTooBig),
        _ if size + view.files.private_bytes() > most => Err(Errno::NoMemory),
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
    handles::forget(&mut client.sender(), opening.handle);
    client.answerer().fail(opening.call, errno);
}

/// Publishes what was changed in a copy; false where there is nothing to publish.
pub(crate) fn publish(
    sender: &mut Sender<'_>,
    node: TreeNodeId,
    handle: Handle,
    then: AfterPublishing,
) -> bool {
    let copy = sender.view.files.open_mut(handle).and_then(|open| open.copy.as_mut());
    let Some(copy) = copy.filter(|copy| copy.is_changed) else { return false };
    copy.is_changed = false;
    let copy = copy.clone();
    publish::start(sender, node, handle, copy, then);
    true
}
