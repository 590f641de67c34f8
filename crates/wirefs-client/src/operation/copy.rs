//! Copy range: done by the server, so that the data crosses no wire.

use crate::call::{Answer, CallId, Caller, Handle};
use crate::core::Client;
use crate::operation::{attributes, puts};
use crate::pending::{Copying, Pending};
use crate::steps::Step;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::copy::{Rcopy, Tcopy};
use wirefs_op::{Errno, Request, Time};

/// Bytes that one request copies at most, so that it ends in a time that a caller can be interrupted in.
const COPY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// # Cost
/// 1 round trip.
pub(crate) fn start(
    client: &mut Client,
    call: CallId,
    caller: Caller,
    (from, from_handle, from_offset): (TreeNodeId, Handle, u64),
    (to, to_handle, to_offset): (TreeNodeId, Handle, u64),
    length: u64,
) -> Result<(), Errno> {
    // The kernel copies then.
    if client.view.files.is_copy(from_handle) || client.view.files.is_copy(to_handle) {
        return Err(Errno::NotSupported);
    }
    let source = client.view.target(from, Some(from_handle))?;
    let target = client.view.target(to, Some(to_handle))?;
    let kills_privileges = puts::kills_privileges(client, caller, to, &target);
    let length = length.min(COPY_BYTES_MAX);
    let copy = Tcopy { from: source, from_offset, to: target, to_offset, length };
    client.change_begins(to, 0);
    client.send(Request::Copy(copy), Pending::Copy(Copying { call, to, kills_privileges }));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, copying: Copying, sent: Time, reply: Rcopy) {
    let Copying { call, to, kills_privileges } = copying;
    client.view.files.write_answered(to, 0);
    client.view.files.forget_contents(to);
    attributes::took_effect(&mut client.view, &mut client.outputs, to, None, reply.stat.as_ref(), sent);
    let count = u32::try_from(reply.count).unwrap_or(u32::MAX);
    client.view.answer_with_fallen(
        &mut client.calls,
        &mut client.outputs,
        (call, Answer::Count(count)),
        to,
        kills_privileges,
    );
    client.outputs.leave(Step::ChangeEnded(to));
}

pub(crate) fn failed(client: &mut Client, copying: Copying, errno: Errno) {
    client.view.files.write_answered(copying.to, 0);
    client.fail(copying.call, errno);
    client.outputs.leave(Step::ChangeEnded(copying.to));
}
