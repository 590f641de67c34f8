//! Readlink.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::pending::{Linkreading, Pending};
use wirefs_cache::TreeNodeId;
use wirefs_op::limits::TARGET_BYTES_MAX;
use wirefs_op::message::get::{GetMode, Rget, Tget};
use wirefs_op::{Errno, Request, Time};

/// # Cost
/// 0 round trips when the lookup brought the target, else 1.
pub(crate) fn start(client: &mut Client, call: CallId, node: TreeNodeId) -> Result<(), Errno> {
    if client.view.is_fresh(node)
        && let Some(size) = client.view.names.node(node).map(|node| node.stat.size).filter(|size| *size > 0)
        && let Some(target) = client.view.files.known(node).and_then(|contents| contents.ranges.read(0, size))
    {
        client.view.used_ahead(&client.requests, node);
        client.answerer().answer(call, Answer::Data(target));
        return Ok(());
    }
    if client.view.is_fresh(node) && client.view.reads_stored_link(&mut client.outputs, call, node) {
        return Ok(());
    }
    let target = client.view.target(node, None)?;
    let mode = GetMode::STAT.and(GetMode::DATA);
    let get = Tget { target, mode, nmsgs: 1, offset: 0, count: TARGET_BYTES_MAX as u32 };
    client.sender().send(Request::Get(get), Pending::Readlink(Linkreading { call, node }));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, reading: Linkreading, sent: Time, got: Rget) {
    if let Some(stat) = got.stat {
        client.sender().refresh(&stat, sent);
    }
    client.answerer().answer(reading.call, Answer::Data(got.data.0));
}
