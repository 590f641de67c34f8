//! Hard links.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::attributes;
use crate::pending::{Linking, Pending};
use crate::steps::Step;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::link::{Rlink, Tlink};
use wirefs_op::{Errno, Request, Time};

/// # Cost
/// 1 round trip.
pub(crate) fn start(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    parent: TreeNodeId,
    name: &[u8],
) -> Result<(), Errno> {
    let link = Tlink { target: client.view.target(node, None)?, to: client.view.place(parent, name)? };
    let linking = Linking { call, node, parent, name: name.to_vec() };
    client.send(Request::Link(link), Pending::Link(linking));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, linking: Linking, sent: Time, linked: Rlink) {
    let Linking { call, node, parent, name } = linking;
    let now = client.view.mount.now;
    client.view.files.write_answered(node, 0);
    client.view.names.link(parent, &name, node);
    attributes::took_effect(&mut client.view, &mut client.outputs, node, None, linked.stat.as_ref(), sent);
    let known = client.view.known_own(parent, &name, linked.dir.as_ref(), sent);
    match linked.stat.as_ref() {
        Some(stat) => client.view.directories.added(parent, &name, stat, known, now),
        None => client.view.directories.changed(parent, now),
    }
    attributes::changed(&mut client.view, parent, linked.dir.as_ref(), sent);
    match client.view.entry(node, known) {
        Ok(entry) => client.answer(call, Answer::Entry(entry)),
        Err(errno) => client.fail(call, errno),
    }
    client.outputs.leave(Step::ChangeEnded(node));
}

pub(crate) fn failed(client: &mut Client, linking: Linking, errno: Errno) {
    client.view.files.write_answered(linking.node, 0);
    let errno = attributes::gone_above(&mut client.view, &mut client.outputs, linking.parent, errno);
    client.fail(linking.call, errno);
    client.outputs.leave(Step::ChangeEnded(linking.node));
}
