//! Fallocate.

use crate::call::{Answer, CallId, Caller, Handle};
use crate::core::Client;
use crate::operation::{attributes, puts};
use crate::pending::{Allocating, Pending};
use crate::steps::Step;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::allocate::{Rallocate, Tallocate};
use wirefs_op::{Errno, Request, Time};

/// # Cost
/// 1 round trip.
pub(crate) fn start(
    client: &mut Client,
    call: CallId,
    caller: Caller,
    (node, handle): (TreeNodeId, Handle),
    (offset, length, mode): (u64, u64, u32),
) -> Result<(), Errno> {
    if let Some(answer) = client.view.files.allocate_in_copy((node, handle), (offset, length, mode)) {
        client.answer(call, answer?);
        return Ok(());
    }
    let target = client.view.target(node, Some(handle))?;
    let kills_privileges = puts::kills_privileges(client, caller, node, &target);
    let allocate = Tallocate { target, mode, offset, length };
    client.change_begins(node, 0);
    let allocating = Allocating { call, node, kills_privileges };
    client.send(Request::Allocate(allocate), Pending::Allocate(allocating));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, allocating: Allocating, sent: Time, reply: Rallocate) {
    let Allocating { call, node, kills_privileges } = allocating;
    client.view.files.write_answered(node, 0);
    client.view.files.forget_contents(node);
    attributes::took_effect(&mut client.view, &mut client.outputs, node, None, reply.stat.as_ref(), sent);
    client.view.answer_with_fallen(
        &mut client.calls,
        &mut client.outputs,
        (call, Answer::Done),
        node,
        kills_privileges,
    );
    client.outputs.leave(Step::ChangeEnded(node));
}

pub(crate) fn failed(client: &mut Client, allocating: Allocating, errno: Errno) {
    client.view.files.write_answered(allocating.node, 0);
    client.fail(allocating.call, errno);
    client.outputs.leave(Step::ChangeEnded(allocating.node));
}
