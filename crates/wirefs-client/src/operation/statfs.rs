//! Statfs.

use crate::answering::Answerer;
use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::pending::{Figures, Pending};
use crate::prefetch;
use crate::sending::Sender;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};
use wirefs_op::{Errno, Request, Time};

/// # Cost
/// 0 round trips while the figures may be believed, else 1.
pub(crate) fn start(client: &mut Client, call: CallId, node: TreeNodeId) -> Result<(), Errno> {
    if let Some((figures, at)) = client.view.figures
        && prefetch::are_usable(&client.view, at)
    {
        client.answerer().answer(call, Answer::FsStat(figures));
        return Ok(());
    }
    if join(&mut client.sender(), call) {
        return Ok(());
    }
    let target = client.view.target(node, None)?;
    client.sender().send(Request::Statfs(Tstatfs { target }), Pending::Statfs(Figures(Some(call))));
    Ok(())
}

/// Lets a call wait for figures in transit. Returns false if there are none.
fn join(sender: &mut Sender<'_>, call: CallId) -> bool {
    let Some(tag) = prefetch::coming_figures(sender.requests) else { return false };
    if !sender.requests.sent_at(tag).is_some_and(|at| prefetch::are_usable(sender.view, at)) {
        return false;
    }
    match sender.requests.pending_mut(tag) {
        Some(pending) => {
            *pending = Pending::Statfs(Figures(Some(call)));
            true
        }
        None => false,
    }
}

pub(crate) fn finish(answerer: &mut Answerer<'_>, call: Option<CallId>, sent: Time, reply: Rstatfs) {
    answerer.view.figures = Some((reply.figures, sent));
    if let Some(call) = call {
        answerer.answer(call, Answer::FsStat(reply.figures));
    }
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, call: Option<CallId>, errno: Errno) {
    if let Some(call) = call {
        answerer.fail(call, errno);
    }
}
