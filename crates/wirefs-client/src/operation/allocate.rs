//! Fallocate.

use crate::answering::Answerer;
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
        client.answerer().answer(call, answer?);
        return Ok(());
    }
    let target = client.view.target(node, Some(handle))?;
    let kills_privileges = puts::kills_privileges(&mut client.sender(), caller, node, &target);
    let allocate = Tallocate { target, mode, offset, length };
    client.sender().change_begins(node, 0);
    let allocating = Allocating { call, node, kills_privileges };
    client.sender().send(Request::Allocate(allocate), Pending::Allocate(allocating));
    Ok(())
}

pub(crate) fn finish(answerer: &mut Answerer<'_>, allocating: Allocating, sent: Time, reply: Rallocate) {
    let Allocating { call, node, kills_privileges } = allocating;
    answerer.view.files.write_answered(node, 0);
    answerer.view.files.forget_contents(node);
    attributes::took_effect(answerer.view, answerer.outputs, node, None, reply.stat.as_ref(), sent);
    answerer.answer_with_fallen(call, Answer::Done, node, kills_privileges);
    answerer.outputs.leave(Step::ChangeEnded(node));
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, allocating: Allocating, errno: Errno) {
    answerer.view.files.write_answered(allocating.node, 0);
    answerer.fail(allocating.call, errno);
    answerer.outputs.leave(Step::ChangeEnded(allocating.node));
}
