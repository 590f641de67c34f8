//! Extended attributes.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::attributes;
use crate::pending::{Pending, XattrAsking, XattrUse};
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
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    name: &[u8],
    size_max: u32,
) -> Result<(), Errno> {
    let usage = match name.starts_with(OWN) {
        true => XattrUse::Own { size_max },
        false if has_none(&client.view, node) => return Err(Errno::NoData),
        false => XattrUse::Value { size_max },
    };
    send(client, call, node, XattrAction::Read, name, Bytes::new(), (0, false), usage)
}

/// # Cost
/// As [`read`].
pub(crate) fn list(client: &mut Client, call: CallId, node: TreeNodeId, size_max: u32) -> Result<(), Errno> {
    if has_none(&client.view, node) {
        client.answer(call, value(Bytes::new(), size_max));
        return Ok(());
    }
    let usage = XattrUse::Value { size_max };
    send(client, call, node, XattrAction::List, b"", Bytes::new(), (0, false), usage)
}

/// # Cost
/// 1 round trip.
pub(crate) fn set(
    client: &mut Client,
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
    send(client, call, node, XattrAction::Set, name, value, (flags, kill_sgid), XattrUse::Change)
}

/// # Cost
/// 1 round trip.
pub(crate) fn remove(client: &mut Client, call: CallId, node: TreeNodeId, name: &[u8]) -> Result<(), Errno> {
    send(client, call, node, XattrAction::Remove, name, Bytes::new(), (0, false), XattrUse::Change)
}

fn has_none(view: &View, node: TreeNodeId) -> bool {
    view.is_fresh(node) && view.names.node(node).is_some_and(|node| node.stat.without_xattrs)
}

fn send(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    action: XattrAction,
    name: &[u8],
    value: Bytes,
    (flags, kill_sgid): (u32, bool),
    usage: XattrUse,
) -> Result<(), Errno> {
    let target = client.view.target(node, None)?;
    let name = Text::new(name);
    let xattr = Txattr { target, action, name, flags, kill_sgid, value: Data(value) };
    if matches!(usage, XattrUse::Change) {
        client.change_begins(node, 0);
    }
    client.send(Request::Xattr(xattr), Pending::Xattr(XattrAsking { call, node, usage }));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, asking: XattrAsking, sent: Time, reply: Rxattr) {
    let XattrAsking { call, node, usage } = asking;
    match usage {
        XattrUse::Value { size_max } => client.answer(call, value(reply.value.0, size_max)),
        XattrUse::Own { size_max } => {
            client.calls.answer_after(&mut client.outputs, call, value(reply.value.0, size_max))
        }
        XattrUse::Change => {
            client.view.files.write_answered(node, 0);
            attributes::took_effect(
                &mut client.view,
                &mut client.outputs,
                node,
                None,
                reply.stat.as_ref(),
                sent,
            );
            client.answer(call, Answer::Done);
            client.outputs.leave(Step::ChangeEnded(node));
        }
    }
}

pub(crate) fn failed(client: &mut Client, asking: XattrAsking, errno: Errno) {
    let XattrAsking { call, node, usage } = asking;
    match usage {
        XattrUse::Value { .. } => client.fail(call, errno),
        XattrUse::Own { .. } => client.calls.answer_after(&mut client.outputs, call, Answer::Fail(errno)),
        XattrUse::Change => {
            client.fail(call, errno);
            client.view.files.write_answered(node, 0);
            client.outputs.leave(Step::ChangeEnded(node));
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
