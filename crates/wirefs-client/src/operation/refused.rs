//! Changes that the server rejected although their calls had returned success: the driver quarantines them with their data.

use crate::output::{ChangeFact, Note, Output, Outputs};
use crate::pending::Pending;
use crate::requests::Outstanding;
use crate::view::View;
use wirefs_op::message::put::{PutMode, Rput};
use wirefs_op::{Errno, NOTAG, Reply, Request, Timestamp};

/// Quarantines a change that the server rejected, or of whose data it wrote only a part.
pub(crate) fn watch(view: &mut View, outputs: &mut Outputs, outstanding: &Outstanding, reply: &Reply) {
    if !outstanding.request.is_change() {
        return;
    }
    note(view, outputs, outstanding, reply);
    let errno = match (reply, &outstanding.request, &outstanding.pending) {
        (Reply::Error(error), ..) => error.errno,
        (Reply::Put(Rput { count, .. }), Request::Put(put), Pending::Write(_))
            if (*count as usize) < put.data.0.len() =>
        {
            Errno::NoSpace
        }
        _ => return,
    };
    keep(view, outputs, &outstanding.pending, outstanding.number, &outstanding.request, Some(errno));
}

/// Notes facts about a change in the journal, for a replay by a process that has not seen the reply.
fn note(view: &mut View, outputs: &mut Outputs, outstanding: &Outstanding, reply: &Reply) {
    let Some(number) = outstanding.number.filter(|_| view.mount.config.journal) else { return };
    if let Some(at) = latest(reply) {
        view.note_changed(outputs, at, outstanding.told_since);
    }
    let said = match (reply, &outstanding.request) {
        (_, Request::Lock(_)) => None,
        (Reply::Error(_), _) => Some(ChangeFact::Rejected),
        (Reply::Put(Rput { offset, .. }), Request::Put(put)) if put.mode.has(PutMode::APPEND) => {
            Some(ChangeFact::WroteAt(*offset))
        }
        (Reply::Put(Rput { stat: Some(stat), .. }), Request::Put(put)) if put.mode.has(PutMode::CREATE) => {
            Some(ChangeFact::Created(stat.id))
        }
        _ => None,
    };
    if let Some(said) = said {
        outputs.push(Output::JournalNote(Note::Fact(number, said)));
    }
}

/// The latest change time in the reply to a change.
fn latest(reply: &Reply) -> Option<Timestamp> {
    let stats = match reply {
        Reply::Put(put) => [put.stat, put.dir, None],
        Reply::Remove(remove) => [remove.dir, None, None],
        Reply::Rename(rename) => [rename.stat, rename.from_dir, rename.to_dir],
        Reply::Link(link) => [link.stat, link.dir, None],
        Reply::Xattr(xattr) => [xattr.stat, None, None],
        Reply::Allocate(allocate) => [allocate.stat, None, None],
        Reply::Copy(copy) => [copy.stat, None, None],
        _ => [None; 3],
    };
    stats.into_iter().flatten().map(|stat| stat.ctime).max()
}

pub(crate) fn keep(
    view: &mut View,
    outputs: &mut Outputs,
    pending: &Pending,
    number: Option<u64>,
    request: &Request,
    errno: Option<Errno>,
) {
    let is_journaled = match pending {
        Pending::Confirm(_) => true,
        // Its file may have been closed while there was room.
        Pending::Write(writing) => writing.is_background() && view.has_journal(),
        _ => false,
    };
    let Some(number) = number.filter(|_| is_journaled) else { return };
    outputs.push(Output::Refused(number, request.encode(NOTAG), errno));
    // For the others, their undoing notes it.
    if let (Pending::Write(_), Request::Put(put)) = (pending, request) {
        view.note_late(request.name(), put.target.path.clone(), errno.unwrap_or(Errno::Io));
    }
}
