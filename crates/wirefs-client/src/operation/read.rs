//! Read.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Handle};
use crate::core::Client;
use crate::operation::{as_opened, coalesce, fetch};
use crate::pending::{Exact, Pending};
use crate::sending::Sender;
use crate::view::View;
use crate::view::files::Reader;
use bytes::{Bytes, BytesMut};
use wirefs_cache::TreeNodeId;
use wirefs_op::message::get::{GetMode, Rget, Tget};
use wirefs_op::message::target::NOFD;
use wirefs_op::{Errno, Request, Tag};

pub(crate) fn not_exact(answerer: &mut Answerer<'_>, exact: Exact, errno: Errno) {
    let wanted = (exact.handle, exact.offset, exact.count as u64);
    as_opened::read_failed(answerer, exact.call, wanted, errno);
}

/// # Cost
/// 0 round trips for what is known and valid, else 1; a sequential reader finds the data there before it asks.
pub(crate) fn start(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    offset: u64,
    count: u32,
) -> Result<(), Errno> {
    // Of an open file that goes past the pages none are there afterwards.
    let how = client.view.files.open(handle).map(|open| open.how);
    if how.is_none_or(|how| !client.view.mount.config.is_uncached(how)) {
        client.view.files.kernel_uses(node);
    }
    if let Err(errno) = read(client, call, node, handle, offset, count) {
        as_opened::read_failed(&mut client.answerer(), call, (handle, offset, u64::from(count)), errno);
    }
    Ok(())
}

fn read(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    offset: u64,
    count: u32,
) -> Result<(), Errno> {
    if let Some(answer) = client.view.files.read_copy(handle, offset, count) {
        client.answerer().answer(call, answer);
        return Ok(());
    }
    let open = client.view.files.open(handle).ok_or(Errno::BadDescriptor)?;
    if open.how.direct || !client.view.mount.config.mode.fetch.is_cached() {
        return exactly(&mut client.sender(), call, node, handle, offset, count);
    }
    let end = offset.checked_add(u64::from(count)).ok_or(Errno::Invalid)?;
    let reader =
        Reader { call, handle, start: offset, end, since: client.view.mount.now, tries: 0, opens: None };
    client.view.files.contents(node);
    let answer = fetch::try_read(&mut client.view, node, &reader);
    let missing = answer.is_none();
    if missing {
        coalesce::send(&mut client.sender(), node);
    }
    match answer {
        Some(answer) => {
            client.outputs.counters.data_hits += 1;
            client.answerer().answer(call, answer);
        }
        None => client.outputs.counters.data_misses += 1,
    }
    if missing && client.view.files.is_writing(node) {
        return exactly(&mut client.sender(), call, node, handle, offset, count);
    }
    let wire_bytes = client.requests.incoming.bdp_bytes();
    let size = client.view.names.node(node).map_or(0, |known| known.stat.size);
    let is_ahead = client.view.mount.config.mode.fetch.prefetches();
    let most = if is_ahead { client.view.files.read_ahead_bytes_max() } else { 0 };
    let wanted = match client.view.files.open_mut(handle) {
        Some(open) => {
            open.ahead.advance(offset, end, wire_bytes).min(end.saturating_add(most)).min(size.max(end))
        }
        None => end,
    };
    forget_behind(&mut client.view, node, handle);
    if missing {
        client.view.files.contents(node).readers.push(reader);
        let asked = fetch::ask(&mut client.sender(), node, handle, (offset, end), true);
        if let Err(errno) = asked {
            client.view.files.contents(node).readers.retain(|reader| reader.call != call);
            return Err(errno);
        }
    }
    // Ahead in large steps only: a request for each block read would cost more than it brings.
    let gap = fetch::next_gap(&client.view, node, end, wanted);
    if gap.is_some_and(|(from, _)| wanted == size || wanted - from >= (wanted - end) / 4) {
        fetch::ask(&mut client.sender(), node, handle, (end, wanted), false)?;
    }
    Ok(())
}

/// Evicts data behind a sequential reader: a file that is read once would push all other contents out of memory.
fn forget_behind(view: &mut View, node: TreeNodeId, handle: Handle) {
    if view.files.is_writing(node) || !view.files.may_kernel_have(node) {
        return;
    }
    let behind = view.files.open_mut(handle).and_then(|open| open.ahead.take_passed());
    if let Some((from, to)) = behind {
        view.files.forget_part(node, from, to);
    }
}

pub(crate) fn exactly(
    sender: &mut Sender<'_>,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    offset: u64,
    count: u32,
) -> Result<(), Errno> {
    let target = sender.view.target(node, Some(handle))?;
    let mode = GetMode::DATA
        .and_if(target.fd != NOFD, GetMode::MORE)
        .and_if(sender.view.files.is_writing(node), GetMode::ORDERED);
    let get = Tget { target, mode, nmsgs: 0, offset, count };
    let exact = Exact { call, handle, offset, count: count as usize, received: BytesMut::new() };
    sender.send(Request::Get(get), Pending::ReadExactly(exact));
    Ok(())
}

pub(crate) fn finish_exact(client: &mut Client, tag: Tag, mut exact: Exact, got: Rget, last: bool) {
    if exact.received.len() + got.data.0.len() > exact.count {
        return client.answerer().fail(exact.call, Errno::Protocol);
    }
    if last && exact.received.is_empty() {
        return client.answerer().answer(exact.call, Answer::Data(got.data.0));
    }
    exact.received.extend_from_slice(&got.data.0);
    if last {
        client.answerer().answer(exact.call, Answer::Data(Bytes::from(exact.received)));
    } else if let Some(pending) = client.requests.pending_mut(tag) {
        *pending = Pending::ReadExactly(exact);
    }
}
