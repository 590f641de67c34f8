//! Fetches contents, for readers and as read-ahead.

use crate::call::{Answer, Handle};
use crate::operation::{attributes, handles};
use crate::pending::{Fetching, Pending};
use crate::requests::Requests;
use crate::sending::Sender;
use crate::steps::Step;
use crate::view::View;
use crate::view::files::{Reader, ServerHandle};
use std::time::Duration;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::target::NOFD;
use wirefs_op::{Errno, Request, Tag, Time};

/// Bytes that one request asks for, at most. Several requests are in progress at once.
const REQUEST_BYTES_MAX: u64 = 8 * DATA_BYTES_MAX as u64;
/// Bytes that an open fetches at most, with the request right behind it.
const OPENING_BYTES_MAX: u64 = DATA_BYTES_MAX as u64;
/// Bytes that the reply to an open brings at least, if the file has them. With the rest of the reply, they fit TCP's initial window
/// (RFC 6928).
const OPENING_BYTES_MIN: u64 = 8 * 1024;
/// Beyond its round trip, an open waits for as many bytes as recently arrived in this time.
const OPENING_SPAN: Duration = Duration::from_millis(5);
/// The kernel's first request when a program reads a few bytes.
const KERNEL_READ_BYTES: u64 = 16 * 1024;
const PAGE_BYTES: u64 = 4096;
/// The rest of a file behind its first block is fetched along with the open if it has at most this many bytes: as much as the first
/// sequential read would prefetch a round trip later.
const FOLLOWING_BYTES_MAX: u64 = 2 * DATA_BYTES_MAX as u64;

/// Asks for what is unknown of `start..end` and not being fetched already. With nothing unknown, and `validate`, asks
/// for the attributes alone.
pub(crate) fn ask(
    sender: &mut Sender<'_>,
    node: TreeNodeId,
    handle: Handle,
    (start, end): (u64, u64),
    validate: bool,
) -> Result<(), Errno> {
    let mut at = start;
    let mut asked = false;
    while let Some((from, to)) = next_gap(sender.view, node, at, end) {
        let to = to.min(from.saturating_add(REQUEST_BYTES_MAX));
        at = match sender.view.load_ahead(sender.outputs, node, handle, from, to) {
            Some(to) => to,
            None => {
                send(sender, node, Some(handle), from, to)?;
                to
            }
        };
        asked = true;
    }
    // Requests in progress bring the attributes too.
    let known =
        sender.view.files.known(node).is_some_and(|contents| contents.ranges.first_gap(start, end).is_none());
    if validate && !asked && known {
        send(sender, node, Some(handle), start, start)?;
    }
    Ok(())
}

/// How many bytes the reply to the opening of a file brings, which is to be read. As many as are here in no time; what is behind them
/// ([`follow_opening`]) comes in the same round trip, and only its readers wait for it.
pub(crate) fn first_bytes(view: &View, requests: &Requests, node: TreeNodeId) -> u64 {
    let size = view.names.node(node).map_or(0, |known| known.stat.size);
    let fast = requests.incoming.bytes_within(view.mount.now, OPENING_SPAN);
    // Of a version that may have changed, all that is asked for before the reply might have to be asked for again.
    let is_whole = size <= KERNEL_READ_BYTES || fast >= OPENING_BYTES_MAX / 2 || !view.is_fresh(node);
    if is_whole { OPENING_BYTES_MAX } else { fast.next_multiple_of(PAGE_BYTES).max(OPENING_BYTES_MIN) }
}

/// A file is being opened to be read, and the reply brings it up to `first`. Asks for what is behind that of the first block, and of all
/// that is behind this one where it is little: so a sequential reader does not wait for it.
pub(crate) fn follow_opening(sender: &mut Sender<'_>, node: TreeNodeId, first: u64) {
    let size = sender.view.names.node(node).map_or(0, |known| known.stat.size);
    let block = OPENING_BYTES_MAX;
    let goes_on =
        size > block && size - block <= FOLLOWING_BYTES_MAX && !sender.view.may_be_stored(node, block);
    // To the end of a block, so that a read that goes past the end of the file waits for the same.
    let end = if goes_on { size.next_multiple_of(block) } else { block };
    if first < end.min(size) {
        sender.view.files.contents(node);
    }
    let mut at = first;
    while at < end.min(size) {
        let cut = if at < KERNEL_READ_BYTES { KERNEL_READ_BYTES } else { end };
        if let Some((from, to)) = next_gap(sender.view, node, at, cut).filter(|(from, _)| *from < size) {
            // Where it cannot be asked for, the open cannot either.
            let _asked = send(sender, node, None, from, to);
        }
        at = cut;
    }
}

/// The first stretch of `start..end` that is neither known nor being fetched.
pub(crate) fn next_gap(view: &View, node: TreeNodeId, start: u64, end: u64) -> Option<(u64, u64)> {
    view.files.known(node)?.next_gap(start, end)
}

fn send(
    sender: &mut Sender<'_>,
    node: TreeNodeId,
    handle: Option<Handle>,
    start: u64,
    end: u64,
) -> Result<(), Errno> {
    let target = sender.view.target(node, handle)?;
    let open = handle.and_then(|handle| sender.view.files.open(handle));
    let asks_fd = open.is_some_and(|open| open.server == ServerHandle::None) && start < end;
    let keep = asks_fd || target.fd != NOFD;
    let mode = GetMode::STAT
        .and_if(start < end, GetMode::DATA)
        .and_if(keep, GetMode::MORE)
        .and_if(sender.view.files.is_writing(node), GetMode::ORDERED);
    let open = handle.filter(|_| asks_fd).and_then(|handle| sender.view.files.open_mut(handle));
    if let Some(open) = open {
        open.server.request();
    }
    let contents = sender.view.files.contents(node);
    let epoch = contents.epoch;
    contents.fetching.push((start, end, epoch));
    sender.view.names.hold(node);
    let get = Tget { target, mode, nmsgs: 0, offset: start, count: (end - start) as u32 };
    let fetching = Fetching { node, handle, start, end, at: start, epoch, opens: asks_fd, is_known: false };
    sender.send(Request::Get(get), Pending::Fetch(fetching));
    Ok(())
}

pub(crate) fn finish(
    sender: &mut Sender<'_>,
    tag: Tag,
    mut fetching: Fetching,
    sent: Time,
    got: Rget,
    last: bool,
) {
    let node = fetching.node;
    if let Some(stat) = got.stat {
        sender.refresh(&stat, sent);
        fetching.is_known = sender.view.files.is_of(node, stat.version);
    }
    let len = got.data.0.len() as u64;
    if fetching.at.saturating_add(len) > fetching.end {
        return if last {
            failed(sender, fetching, Errno::Protocol)
        };
    }
    let epoch = sender.view.files.contents(node).epoch;
    if got.mode.has(GotMode::DATA) && fetching.epoch == epoch && fetching.is_known {
        sender.view.files.remember_read(node, fetching.at, &got.data.0);
    }
    fetching.at += len;
    if let Some(handle) = fetching.handle.filter(|_| fetching.opens && got.fd != NOFD) {
        fetching.opens = false;
        let id = sender.view.names.node(node).map(|known| known.stat.id);
        handles::take_fd(sender, handle, id, got.fd);
    }
    if last {
        if !got.mode.has(GotMode::MORE) && fetching.at < fetching.end {
            ends_at(sender.view, node, fetching.at, fetching.epoch, sent);
        }
        done(sender.view, &fetching);
    } else if let Some(pending) = sender.requests.pending_mut(tag) {
        *pending = Pending::Fetch(fetching);
    }
    sender.outputs.leave(Step::ServeReaders(node));
}

/// The file turned out to end at `at`.
fn ends_at(view: &mut View, node: TreeNodeId, at: u64, epoch: u32, sent: Time) {
    let current = view.files.contents(node).epoch == epoch && !view.files.is_writing(node);
    if let Some(known) = view.names.node_mut(node)
        && current
        && sent >= known.changed_at
        && known.stat.size > at
    {
        known.stat.size = at;
    }
}

fn done(view: &mut View, fetching: &Fetching) {
    let contents = view.files.contents(fetching.node);
    let this = (fetching.start, fetching.end, fetching.epoch);
    if let Some(index) = contents.fetching.iter().position(|other| *other == this) {
        contents.fetching.swap_remove(index);
    }
    let handle = fetching.handle.filter(|_| fetching.opens);
    if let Some(open) = handle.and_then(|handle| view.files.open_mut(handle)) {
        open.server.request_failed();
    }
    view.names.release(fetching.node);
}

pub(crate) fn failed(sender: &mut Sender<'_>, fetching: Fetching, errno: Errno) {
    let node = fetching.node;
    done(sender.view, &fetching);
    let readers = std::mem::take(&mut sender.view.files.contents(node).readers);
    // What was asked for along with an opening may still be reached by what that opened.
    let is_readers = fetching.handle.is_some();
    let (hit, rest): (Vec<Reader>, Vec<Reader>) = readers.into_iter().partition(|reader| {
        let overlaps = reader.start < fetching.end.max(fetching.start + 1) && fetching.start < reader.end;
        reader.opens.is_some() || is_readers && overlaps
    });
    sender.view.files.contents(node).readers = rest;
    let errno = attributes::gone(sender.view, sender.outputs, node, errno);
    for reader in hit {
        sender.outputs.leave(Step::FailReader(reader, errno));
    }
    sender.outputs.leave(Step::ServeReaders(node));
}

/// The data for a read, if all of it is known and was valid when the read began, or later.
pub(crate) fn try_read(view: &mut View, node: TreeNodeId, reader: &Reader) -> Option<Answer> {
    let size = view.names.node(node)?.stat.size;
    let coherency = view.coherency();
    let contents = view.files.known(node)?;
    let is_valid =
        |valid: Freshness| valid.at >= reader.since || coherency.is_valid_since(valid, reader.since);
    if !contents.valid.is_some_and(is_valid) {
        return None;
    }
    let end = reader.end.min(size);
    contents.ranges.read(reader.start.min(end), end).map(Answer::Data)
}
