//! Readlink.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::output::{Output, Outputs};
use crate::pending::{Linkreading, Pending};
use crate::view::View;
use bytes::Bytes;
use wirefs_cache::{NameTree, TreeNodeId};
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
        let answer = answer_of(&mut client.view, &mut client.outputs, node, target);
        client.answerer().answer(call, answer);
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
    let answer = answer_of(&mut client.view, &mut client.outputs, reading.node, got.data.0);
    client.answerer().answer(reading.call, answer);
}

/// The answer: the target, unless the kernel would follow it out of a mount that confines links. The kernel reads a link in the same
/// way for `readlink` and to follow it.
fn answer_of(view: &mut View, outputs: &mut Outputs, node: TreeNodeId, target: Bytes) -> Answer {
    let mountpoint = view.mount.mountpoint.as_ref();
    if !view.mount.config.confines_links
        || view.names.leads_inside(node, &target)
        || mountpoint.is_some_and(|mountpoint| NameTree::leads_to_mount(mountpoint, &target))
    {
        return Answer::Data(target);
    }
    if !std::mem::replace(&mut view.mount.has_refused_link, true) {
        outputs.push(Output::RefusedLink(view.names.path(node).unwrap_or_default(), target));
    }
    Answer::Fail(Errno::AccessDenied)
}
