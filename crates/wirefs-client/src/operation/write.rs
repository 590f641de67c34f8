//! Write: data is sent at once, and the caller goes on unless too much is unacknowledged.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Handle, Invalidate, OpenHow, WriteData};
use crate::core::Client;
use crate::operation::{attributes, coalesce, puts};
use crate::output::{ChangeFact, Note, Output, Outputs};
use crate::pending::{Pending, Writing};
use crate::requests::Requests;
use crate::steps::Step;
use crate::view::View;
use bytes::Bytes;
use wirefs_cache::TreeNodeId;
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::put::{PutMode, Rput};
use wirefs_op::{Errno, Time};

/// # Cost
/// 0 round trips in the background; 1 for synchronous files and modes.
pub(crate) fn start(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    offset: u64,
    data: WriteData<'_>,
    (cached, kill_privileges): (bool, bool),
) -> Result<(), Errno> {
    let how = client.view.files.open(handle).ok_or(Errno::BadDescriptor)?.how;
    if cached || !client.view.mount.config.is_uncached(how) {
        client.view.files.kernel_uses(node);
    }
    // Left for fsync or close to take: the kernel may cut one write into several, and shows an error of a later part as a
    // short count only.
    client.view.files.error(handle).map_or(Ok(()), Err)?;
    let own = client.view.files.write_copy((node, handle), offset, data, how.append && !cached);
    if let Some(answer) = own {
        client.answerer().answer(call, answer?);
        return Ok(());
    }
    take_in(&client.view, &client.requests, cached)?;
    let publish = client.view.mount.config.mode.publish;
    let background = publish.is_write_back() && !how.sync && !passes_pages(how, cached);
    let append = how.append && !cached;
    let count = data.len() as u32;
    if data.is_empty() {
        client.answerer().answer(call, Answer::Count(0));
        return Ok(());
    }
    let data = data.to_bytes();
    let target = client.view.target(node, Some(handle))?;
    let coalesces = background && !append && publish.coalesced_bytes() > 0;
    if !coalesces {
        coalesce::send(&mut client.sender(), node);
    }
    let is_ahead = background && !append && may_go_ahead(&client.view, &client.requests, node);
    let expected = if append { appends(&mut client.view, &client.requests, node) } else { None };
    if !append {
        took_local_effect(&mut client.view, &client.requests, node, offset, &data, is_ahead);
        forget_behind(&mut client.view, node, handle, (offset, offset + data.len() as u64));
    }
    if coalesces {
        coalesce::add(&mut client.sender(), node, handle, offset, &data, kill_privileges);
        go_behind(client, call, count);
        return Ok(());
    }
    let mut at = 0;
    while at < data.len() {
        let end = data.len().min(at + DATA_BYTES_MAX);
        let piece = data.slice(at..end);
        let waits = (!background).then_some((call, at as u32));
        let mode = PutMode::DATA
            .and_if(append, PutMode::APPEND)
            .and_if(how.sync && end == data.len(), PutMode::SYNC)
            .and_if(kill_privileges, PutMode::KILL_PRIVILEGES);
        let number = client.requests.next_number();
        let how = puts::How { waits, is_ahead, passes_pages: passes_pages(how, cached) };
        puts::send(&mut client.sender(), node, target.clone(), mode, offset + at as u64, piece, how);
        let written = expected.map(|start| (start + at as u64, start + end as u64));
        let (view, outputs) = (&mut client.view, &mut client.outputs);
        is_expected(view, &client.requests, outputs, node, number, written);
        at = end;
    }
    if background {
        go_behind(client, call, count);
    }
    Ok(())
}

/// Whether a write goes past the kernel's pages, which are dropped before it is answered then. Pages that a mapping of the file changed are
/// sent through any open file, one that passes the pages too: the kernel drops them only once they are answered.
fn passes_pages(how: OpenHow, cached: bool) -> bool {
    how.direct && !cached
}

/// Past the deadline no data is taken in, but for the kernel's own pages as long as there is room: what is refused of these is lost.
fn take_in(view: &View, requests: &Requests, cached: bool) -> Result<(), Errno> {
    let may_wait = cached && view.files.unacknowledged() <= requests.unacknowledged_bytes_max();
    if view.is_past_deadline(requests) && !may_wait { Err(Errno::HostDown) } else { Ok(()) }
}

/// The server decides where an append goes: what is known does not have it, and must not answer its writer. Returns where it goes if nobody
/// else changes the file, as far as this client can know.
fn appends(view: &mut View, requests: &Requests, node: TreeNodeId) -> Option<u64> {
    let known = view.names.node(node).map(|known| known.stat.size);
    let last = view.files.contents(node).appended.filter(|_| view.files.is_writing(node));
    // While the mount connects again the session is not exclusive. A change by another client since then has a later
    // time, which a replay sees.
    let was_exclusive = view.exclusive.unconfirmed.was_exclusive;
    let expected = match may_go_ahead(view, requests, node) {
        true => known,
        false if was_exclusive => last.or(known),
        false => last.filter(|_| view.may_be_ahead(requests)),
    };
    view.files.contents(node).valid = None;
    if view.files.is_ahead(node) {
        view.names.invalidate(node);
    }
    expected
}

/// The append that was just sent under this number, if it has one, is expected to begin and end there.
fn is_expected(
    view: &mut View,
    requests: &Requests,
    outputs: &mut Outputs,
    node: TreeNodeId,
    number: u64,
    written: Option<(u64, u64)>,
) {
    let Some((start, end)) = written else { return };
    view.files.contents(node).appended = Some(end);
    if view.mount.config.journal && requests.next_number() == number + 1 {
        outputs.push(Output::JournalNote(Note::Fact(number, ChangeFact::WillWriteAt(start))));
    }
}

/// A writer goes on, or waits while too much is behind.
fn go_behind(client: &mut Client, call: CallId, count: u32) {
    if client.view.files.unacknowledged() > client.requests.unacknowledged_bytes_max() {
        client.view.files.throttled.0.push_back((call, count));
    } else {
        client.answerer().answer(call, Answer::Count(count));
    }
}

/// A writer that waits, and whose data was taken in, waits no longer.
pub(crate) fn end_throttled(answerer: &mut Answerer<'_>, call: CallId) {
    let waits = answerer.view.files.throttled.0.iter().position(|(waiting, _)| *waiting == call);
    if let Some((call, count)) = waits.and_then(|at| answerer.view.files.throttled.0.remove(at)) {
        answerer.answer(call, Answer::Count(count));
    }
}

/// Whether what a write makes of the file is known. With set-id bits the server decides whether they fall.
fn may_go_ahead(view: &View, requests: &Requests, node: TreeNodeId) -> bool {
    let is_plain = view.names.node(node).is_some() && !puts::has_set_id(view, node);
    is_plain && (view.is_ahead(node) || view.can_be_ahead(requests, node))
}

/// Makes a write visible to programs at once: the data, and the size.
fn took_local_effect(
    view: &mut View,
    requests: &Requests,
    node: TreeNodeId,
    offset: u64,
    data: &Bytes,
    is_ahead: bool,
) {
    let end = offset + data.len() as u64;
    // A write is a use of prefetched contents, also of a file that was open before they came.
    view.used_ahead(requests, node);
    if is_ahead {
        view.shows_own(node);
    }
    let day = view.names.node(node).map(|known| view.time_after(known.stat.ctime)).unwrap_or_default();
    let before = view.names.node(node).filter(|_| is_ahead).map(|known| known.stat.size);
    if let Some(known) = view.names.node_mut(node) {
        known.stat.size = known.stat.size.max(end);
        if is_ahead {
            // Not more than what was written, so that holes show.
            let taken = known.stat.blocks + (data.len() as u64).div_ceil(4096) * 8;
            known.stat.blocks = taken.min(known.stat.size.div_ceil(4096) * 8);
            (known.stat.mtime, known.stat.ctime) = (day, day);
        }
    }
    if !is_ahead && view.files.is_ahead(node) {
        view.names.invalidate(node);
    }
    view.names.changing(node, view.mount.now);
    if view.mount.config.mode.fetch.is_cached() {
        if let Some(size) = before {
            view.files.remember_hole(node, size, offset);
        }
        view.files.remember_written(node, offset, data.clone());
    }
}

/// Evicts data behind a sequential writer, as behind a reader. A read of it that misses the page cache goes to the server, ordered
/// after these writes.
fn forget_behind(view: &mut View, node: TreeNodeId, handle: Handle, (start, end): (u64, u64)) {
    let behind = view.files.open_mut(handle).and_then(|open| {
        open.written.advance(start, end, 0);
        open.written.take_passed()
    });
    if let Some((from, to)) = behind {
        view.files.forget_part(node, from, to);
    }
}

pub(crate) fn finish(client: &mut Client, writing: Writing, sent: Time, put: Rput) {
    let Writing { node, bytes, end, waits, passes_pages, .. } = writing;
    answered(&mut client.view, &writing);
    client.view.files.contents(node).uncommitted = true;
    let shown =
        client.view.names.node(node).filter(|known| known.freshness.is_some()).map(|known| known.stat);
    if let (true, Some(shown), Some(stat)) = (writing.is_ahead, shown, put.stat.as_ref())
        && !client.view.files.is_writing(node)
    {
        client.view.caught_up(&shown, stat);
    }
    // A kernel that writes past its pages believes the mode that it knew: with its set-id bits, though they fell.
    let had_set_id = puts::has_set_id(&client.view, node);
    let outdated = match (passes_pages, end) {
        (true, Some(end)) => {
            // With the parts of the call before this one, so that its answer has to wait for one thing only.
            let length = bytes + waits.map_or(0, |(_, before)| u64::from(before));
            Some(Invalidate::Node { node, offset: (end - length) as i64, length: length as i64 })
        }
        (true, None) => Some(Invalidate::Node { node, offset: 0, length: 0 }),
        (false, _) => {
            (had_set_id && waits.is_some()).then_some(Invalidate::Node { node, offset: -1, length: 0 })
        }
    };
    attributes::took_effect(
        &mut client.view,
        &mut client.outputs,
        node,
        Some(put.before),
        put.stat.as_ref(),
        sent,
    );
    if u64::from(put.count) < bytes {
        // The server's disk took a part: what it did not take is lost to us as well.
        client.view.files.forget_contents(node);
        client.outputs.invalidate(Invalidate::Node { node, offset: 0, length: 0 });
        match waits {
            Some((call, before)) if before + put.count > 0 => {
                client.answerer().answer(call, Answer::Count(before + put.count));
            }
            Some((call, _)) => client.answerer().fail(call, Errno::NoSpace),
            None => client.view.files.write_failed(node, Errno::NoSpace),
        }
    } else if let Some((call, before)) = waits {
        let done = before + put.count;
        let is_last = !client.requests.any(|pending| is_part_of(pending, call));
        match (is_last, outdated) {
            (true, Some(outdated)) => {
                client.calls.answer_dropped(&mut client.outputs, outdated, call, Answer::Count(done))
            }
            (true, None) => client.answerer().answer(call, Answer::Count(done)),
            (false, outdated) => {
                outdated.into_iter().for_each(|outdated| client.outputs.invalidate(outdated))
            }
        }
    } else if let Some(outdated) = outdated {
        client.outputs.invalidate(outdated);
    }
    client.outputs.leave(Step::ChangeEnded(node));
}

fn answered(view: &mut View, writing: &Writing) {
    view.files.write_answered(writing.node, writing.bytes);
    if writing.is_ahead {
        view.exclusive.unconfirmed.answered();
    }
    if let Some(end) = writing.end {
        view.files.reached(writing.node, end);
    }
}

fn is_part_of(pending: &Pending, call: CallId) -> bool {
    matches!(pending, Pending::Write(writing) if writing.waits.is_some_and(|(waiting, _)| waiting == call))
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, writing: Writing, errno: Errno) {
    let Writing { node, waits, .. } = writing;
    answered(answerer.view, &writing);
    answerer.view.files.forget_contents(node);
    answerer.view.names.invalidate(node);
    answerer.outputs.invalidate(Invalidate::Node { node, offset: 0, length: 0 });
    match waits {
        Some((call, _)) => answerer.fail(call, errno),
        None => answerer.view.files.write_failed(node, errno),
    }
    answerer.outputs.leave(Step::ChangeEnded(node));
}
