//! Stateless readdir: the kernel reads a directory without opening it (`docs/design/0025-stateless-readdir.md`).

use crate::answering::Answerer;
use crate::call::{Answer, Call, CallId, Handle, Invalidate, Listed};
use crate::core::Client;
use crate::operation::list;
use crate::output::Output;
use crate::pending::ListingReader;
use crate::steps::Step;
use crate::view::View;
use crate::view::files::{Ending, Part, Position, WaitingReaddir};
use std::sync::Arc;
use wirefs_cache::TreeNodeId;
use wirefs_op::Errno;

/// # Cost
/// 0 round trips when the listing is known and valid, or its reading has begun; else 1.
pub(crate) fn read(client: &mut Client, node: TreeNodeId, wanted: WaitingReaddir) -> Result<(), Errno> {
    match Position::of(wanted.offset) {
        Position::Begin => begin(client, node, wanted),
        Position::End(age) => {
            ends(&mut client.answerer(), node, age, &wanted);
            Ok(())
        }
        Position::At(number, offset) => {
            let stateless = &client.view.files.stateless;
            let wanted = WaitingReaddir { offset, number: Some(number), ..wanted };
            match stateless.reading(node, number) {
                Some(handle) => list::go_on(client, handle, wanted),
                None if stateless.has_ended(node, number) => {
                    return list::open(client, ListingReader::Readdir(wanted), node);
                }
                None => return Err(Errno::Stale),
            }
            Ok(())
        }
    }
}

/// Whether the calls that wait for a listing may be answered. One that was asked for to continue an ended reading must be all here.
pub(crate) fn may_answer(view: &mut View, handle: Handle) -> bool {
    let now = view.mount.now;
    let stateless = &mut view.files.stateless;
    let Some(open) = stateless.directory(handle) else { return true };
    let numbered = |wanted: &WaitingReaddir| wanted.number.map(|number| (number, wanted.offset));
    let Some((number, position)) = open.waiting.iter().find_map(numbered) else { return true };
    if stateless.reading(open.node, number).is_some() || open.error.is_some() {
        return true;
    }
    let is_here = open.complete;
    if is_here {
        stateless.continue_ended(handle, number, position, now);
    }
    is_here
}

fn begin(client: &mut Client, node: TreeNodeId, wanted: WaitingReaddir) -> Result<(), Errno> {
    let Some(handle) = shared(&mut client.view, node) else {
        return list::open(client, ListingReader::Readdir(wanted), node);
    };
    client.outputs.counters.name_hits += 1;
    client.view.used_ahead(&client.requests, node);
    client.view.directory_opened(&client.requests, node);
    list::go_on(client, handle, wanted);
    Ok(())
}

/// The last reading of a directory that has not changed since.
fn shared(view: &mut View, node: TreeNodeId) -> Option<Handle> {
    let coherency = view.coherency();
    let handle = view.files.stateless.latest(node)?;
    let snapshot = view.directories.snapshot(node, &coherency);
    let open = view.files.directory_mut(handle)?;
    if !open.complete || open.error.is_some() || !open.invalidated.is_empty() {
        return None;
    }
    match snapshot {
        Some((entries, listed)) => {
            let is_same = open.entries.shared().is_some_and(|shared| Arc::ptr_eq(shared, &entries));
            open.listed = if is_same { listed } else { return None };
        }
        // Too long to be remembered in another way.
        None => {
            let is_since = view.names.node(node).is_some_and(|known| open.taken_at > known.changed_at);
            return (is_since && coherency.is_leased(open.listed)).then_some(handle);
        }
    }
    Some(handle)
}

/// Answers a readdir with a part of a reading.
pub(crate) fn answer(answerer: &mut Answerer<'_>, handle: Handle, wanted: &WaitingReaddir, answer: Answer) {
    let (call, number) = (wanted.call, wanted.number);
    let Some(open) = answerer.view.files.stateless.directory(handle) else {
        return answerer.answer(call, answer);
    };
    // A call without a waiting caller gets no entries.
    let Answer::Listing(listed) = &answer else { return tells_nobody(answerer, handle, call, answer) };
    if !answerer.calls.is_waiting(call) {
        return tells_nobody(answerer, handle, call, answer);
    }
    let (dir, past, error) = (open.node, open.entries.len() as u64 + 2, open.error);
    if listed.is_empty() && wanted.offset < past {
        // There is no room for an entry.
        return tells_nobody(answerer, handle, call, Answer::Fail(Errno::Invalid));
    }
    if listed.is_empty() && wanted.offset > past {
        // A position that no READDIR has returned: the program made it up.
        return tells_nobody(answerer, handle, call, Answer::Fail(Errno::Stale));
    }
    if listed.is_empty() {
        let age = number.and_then(|number| answerer.view.files.stateless.age(dir, number));
        return match age {
            Some(age) => ends(answerer, dir, age, wanted),
            None => answerer.answer(call, Answer::ListingEnd),
        };
    }
    let is_last = open.complete && error.is_none() && listed.last().is_some_and(|last| last.next == past);
    let is_promised = answerer.view.coherency().is_leased(open.listed);
    let part = Part { number, thread: wanted.thread, is_last, is_promised };
    let told = answerer.view.files.stateless.tells(handle, part, answerer.view.mount.now);
    let Some(told) = told else {
        // An ended reading that cannot be continued: its outline is not known any more, or the server failed.
        answerer.outputs.leave(Step::Undo(call, answer));
        return tells_nobody(answerer, handle, call, Answer::Fail(error.unwrap_or(Errno::Stale)));
    };
    let Answer::Listing(mut listed) = answer else { return };
    let behind = |entry: &mut Listed| {
        let is_end = is_last && entry.next == past;
        let behind = if is_end { Position::End(told.age) } else { Position::At(told.number, entry.next) };
        entry.next = behind.offset()?;
        Some(())
    };
    let are_all_there = listed.iter_mut().all(|entry| behind(entry).is_some());
    if are_all_there {
        answerer.answer(call, Answer::Listing(listed));
    } else {
        // Longer than there are positions. Told by an error rather than by leaving names out.
        answerer.outputs.leave(Step::Undo(call, Answer::Listing(listed)));
        answerer.fail(call, Errno::Overflow);
    }
}

fn tells_nobody(answerer: &mut Answerer<'_>, handle: Handle, call: CallId, answer: Answer) {
    answerer.answer(call, answer);
    answerer.view.files.stateless.tells_nobody(handle);
}

/// Answers a readdir at the end of a reading.
fn ends(answerer: &mut Answerer<'_>, dir: TreeNodeId, age: u64, wanted: &WaitingReaddir) {
    let nothing = Answer::Listing(Vec::new());
    match answerer.view.files.stateless.ends(dir, age, wanted.thread) {
        Ending::Whole => answerer.answer(wanted.call, nothing),
        Ending::Dropped => answerer.calls.answer_dropped(
            answerer.outputs,
            Invalidate::Listing { node: dir },
            wanted.call,
            nothing,
        ),
        Ending::Plain => {
            answerer.answer(wanted.call, Answer::ListingEnd);
            if let Some(until) = answerer.view.files.stateless.awaits(dir) {
                answerer.outputs.push(Output::AwaitReaders(dir, until));
            }
        }
    }
}

/// Whether the calling thread has received the answers to its earlier calls. A call for contents proves nothing: the buffer of a readdir
/// may be mapped from a file of this mount.
pub(crate) fn goes_on(call: &Call<'_>) -> bool {
    let looks =
        matches!(call, Call::Readdir { .. } | Call::Lookup { .. } | Call::Getattr { .. } | Call::Open { .. });
    looks || changes_names_in(call).is_some()
}

/// The directories in which a call changes names.
pub(crate) fn changes_names_in(call: &Call<'_>) -> Option<[Option<TreeNodeId>; 2]> {
    match *call {
        Call::Mknod { parent, .. }
        | Call::Mkdir { parent, .. }
        | Call::Symlink { parent, .. }
        | Call::Unlink { parent, .. }
        | Call::Rmdir { parent, .. }
        | Call::Link { parent, .. }
        | Call::Create { parent, .. } => Some([Some(parent), None]),
        Call::Rename { parent, to_parent, .. } => Some([Some(parent), Some(to_parent)]),
        _ => None,
    }
}
