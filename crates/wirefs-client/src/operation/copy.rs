//! Copy range: the server copies, so the data is not transferred.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Caller, Handle};
use crate::operation::{attributes, puts};
use crate::pending::{Copying, Pending};
use crate::sending::Sender;
use crate::steps::Step;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::copy::{Rcopy, Tcopy};
use wirefs_op::{Errno, Request, Time};

/// Bytes that one request copies at most, so that it ends in a time that a caller can be interrupted in.
const COPY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// # Cost
/// 1 round trip.
pub(crate) fn start(
    sender: &mut Sender<'_>,
    call: CallId,
    caller: Caller,
    (from, from_handle, from_offset): (TreeNodeId, Handle, u64),
    (to, to_handle, to_offset): (TreeNodeId, Handle, u64),
    length: u64,
) -> Result<(), Errno> {
    // The kernel copies then.
    if sender.view.files.is_copy(from_handle) || sender.view.files.is_copy(to_handle) {
        return Err(Errno::NotSupported);
    }
    let source = sender.view.target(from, Some(from_handle))?;
    let target = sender.view.target(to, Some(to_handle))?;
    let kills_privileges = puts::kills_privileges(sender, caller, to, &target);
    let length = length.min(COPY_BYTES_MAX);
    let copy = Tcopy { from: source, from_offset, to: target, to_offset, length };
    sender.change_begins(to, 0);
    sender.send(Request::Copy(copy), Pending::Copy(Copying { call, to, kills_privileges }));
    Ok(())
}

pub(crate) fn finish(answerer: &mut Answerer<'_>, copying: Copying, sent: Time, reply: Rcopy) {
    let Copying { call, to, kills_privileges } = copying;
    answerer.view.files.write_answered(to, 0);
    answerer.view.files.forget_contents(to);
    attributes::took_effect(answerer.view, answerer.outputs, to, None, reply.stat.as_ref(), sent);
    let count = u32::try_from(reply.count).unwrap_or(u32::MAX);
    answerer.answer_with_fallen(call, Answer::Count(count), to, kills_privileges);
    answerer.outputs.leave(Step::ChangeEnded(to));
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, copying: Copying, errno: Errno) {
    answerer.view.files.write_answered(copying.to, 0);
    answerer.fail(copying.call, errno);
    answerer.outputs.leave(Step::ChangeEnded(copying.to));
}
