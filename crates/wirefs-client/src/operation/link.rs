//! Hard links.

use crate::answering::Answerer;
use crate::call::{Answer, CallId};
use crate::operation::attributes;
use crate::pending::{Linking, Pending};
use crate::sending::Sender;
use crate::steps::Step;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::link::{Rlink, Tlink};
use wirefs_op::{Errno, Request, Time};

/// # Cost
/// 1 round trip.
pub(crate) fn start(
    sender: &mut Sender<'_>,
    call: CallId,
    node: TreeNodeId,
    parent: TreeNodeId,
    name: &[u8],
) -> Result<(), Errno> {
    let link = Tlink { target: sender.view.target(node, None)?, to: sender.view.place(parent, name)? };
    let linking = Linking { call, node, parent, name: name.to_vec() };
    sender.send(Request::Link(link), Pending::Link(linking));
    Ok(())
}

pub(crate) fn finish(answerer: &mut Answerer<'_>, linking: Linking, sent: Time, linked: Rlink) {
    let Linking { call, node, parent, name } = linking;
    let now = answerer.view.mount.now;
    answerer.view.files.write_answered(node, 0);
    answerer.view.names.link(parent, &name, node);
    attributes::took_effect(answerer.view, answerer.outputs, node, None, linked.stat.as_ref(), sent);
    let known = answerer.view.known_own(parent, &name, linked.dir.as_ref(), sent);
    match linked.stat.as_ref() {
        Some(stat) => answerer.view.directories.added(parent, &name, stat, known, now),
        None => answerer.view.directories.changed(parent, now),
    }
    attributes::changed(answerer.view, parent, linked.dir.as_ref(), sent);
    match answerer.view.entry(node, known) {
        Ok(entry) => answerer.answer(call, Answer::Entry(entry)),
        Err(errno) => answerer.fail(call, errno),
    }
    answerer.outputs.leave(Step::ChangeEnded(node));
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, linking: Linking, errno: Errno) {
    answerer.view.files.write_answered(linking.node, 0);
    let errno = attributes::gone_above(answerer.view, answerer.outputs, linking.parent, errno);
    answerer.fail(linking.call, errno);
    answerer.outputs.leave(Step::ChangeEnded(linking.node));
}
