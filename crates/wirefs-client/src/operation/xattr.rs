//! Extended attributes.

use crate::answering::Answerer;
use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::attributes;
use crate::pending::{Pending, XattrAsking, XattrUse};
use crate::sending::Sender;
use crate::steps::Step;
use crate::view::View;
use bytes::Bytes;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::xattr::{Rxattr, Txattr, XattrAction};
use wirefs_op::wire::{Data, Text};
use wirefs_op::{Errno, Request, Time};

/// The prefix of attributes of the tree itself.
const OWN: &[u8] = b"wirefs.";

/// # Cost
/// 0 round trips when the file is known to have none (as `ls -l` asks of each), else 1.
pub(crate) fn read(
    sender: &mut Sender<'_>,
    call: CallId,
    node: TreeNodeId,
    name: &[u8],
    size_max: u32,
) -> Result<(), Errno> {
    let usage = match name.starts_with(OWN) {
        true => XattrUse::Own { size_max },
        false if has_none(sender.view, node) => return Err(Errno::NoData),
        false => XattrUse::Value { size_max },
    };
    send(sender, call, node, XattrAction::Read, name, Bytes::new(), (0, false), usage)
}

/// # Cost
/// As [`read`].
pub(crate) fn list(client: &mut Client, call: CallId, node: TreeNodeId, size_max: u32) -> Result<(), Errno> {
    if has_none(&client.view, node) {
        client.answerer().answer(call, value(Bytes::new(), size_max));
        return Ok(());
    }
    let usage = XattrUse::Value { size_max };
    send(&mut client.sender(), call, node, XattrAction::List, b"", Bytes::new(), (0, false), usage)
}

/// # Cost
/// 1 round trip.
pub(crate) fn set(
    sender: &mut Sender<'_>,
    call: CallId,
    node: TreeNodeId,
    name: &[u8],
    value: &[u8],
    (flags, kill_sgid): (u32, bool),
) -> Result<(), Errno> {
    if value.len() > wirefs_op::limits::XATTR_BYTES_MAX {
        return Err(Errno::TooBig);
    }
    let value = Bytes::copy_from_slice(value);
    send(sender, call, node, XattrAction::Set, name, value, (flags, kill_sgid), XattrUse::Change)
}

/// # Cost
/// 1 round trip.
pub(crate) fn remove(
    sender: &mut Sender<'_>,
    call: CallId,
    node: TreeNodeId,
    name: &[u8],
) -> Result<(), Errno> {
    send(sender, call, node, XattrAction::Remove, name, Bytes::new(), (0, false), XattrUse::Change)
}

fn has_none(view: &View, node: TreeNodeId) -> bool {
    view.is_fresh(node) && view.names.node(node).is_some_and(|node| node.stat.without_xattrs)
}

fn send(
    sender: &mut Sender<'_>,
    call: CallId,
    node: TreeNodeId,
    action: XattrAction,
    name: &[u8],
    value: Bytes,
    (flags, kill_sgid): (u32, bool),
    usage: XattrUse,
) -> Result<(), Errno> {
    let target = sender.view.target(node, None)?;
    let name = Text::new(name);
    let xattr = Txattr { target, action, name, flags, kill_sgid, value: Data(value) };
    if matches!(usage, XattrUse::Change) {
        sender.change_begins(node, 0);
    }
    sender.send(Request::Xattr(xattr), Pending::Xattr(XattrAsking { call, node, usage }));
    Ok(())
}

pub(crate) fn finish(answerer: &mut Answerer<'_>, asking: XattrAsking, sent: Time, reply: Rxattr) {
    let XattrAsking { call, node, usage } = asking;
    match usage {
        XattrUse::Value { size_max } => answerer.answer(call, value(reply.value.0, size_max)),
        XattrUse::Own { size_max } => {
            answerer.calls.answer_after(answerer.outputs, call, value(reply.value.0, size_max))
        }
        XattrUse::Change => {
            answerer.view.files.write_answered(node, 0);
            attributes::took_effect(answerer.view, answerer.outputs, node, None, reply.stat.as_ref(), sent);
            answerer.answer(call, Answer::Done);
            answerer.outputs.leave(Step::ChangeEnded(node));
        }
    }
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, asking: XattrAsking, errno: Errno) {
    let XattrAsking { call, node, usage } = asking;
    match usage {
        XattrUse::Value { .. } => answerer.fail(call, errno),
        XattrUse::Own { .. } => answerer.calls.answer_after(answerer.outputs, call, Answer::Fail(errno)),
        XattrUse::Change => {
            answerer.fail(call, errno);
            answerer.view.files.write_answered(node, 0);
            answerer.outputs.leave(Step::ChangeEnded(node));
        }
    }
}

fn value(value: Bytes, size_max: u32) -> Answer {
    match size_max {
        0 => Answer::Size(value.len() as u32),
        max if value.len() > max as usize => Answer::Fail(Errno::Range),
        _ => Answer::Data(value),
    }
}
