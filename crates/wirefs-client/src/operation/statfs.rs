//! Statfs.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::pending::{Figures, Pending};
use crate::view::View;
use std::time::Duration;
use wirefs_cache::{Freshness, ROOT, TreeNodeId};
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};
use wirefs_op::{Errno, Request, Tag, Time};

/// How long the figures are believed in a mode that does not ask for what it knows, unless this mount changed something since.
const BELIEVED_FOR: Duration = Duration::from_secs(10);

/// # Cost
/// 0 round trips while the figures may be believed, else 1.
pub(crate) fn start(client: &mut Client, call: CallId, node: TreeNodeId) -> Result<(), Errno> {
    if let Some((figures, at)) = client.view.figures
        && is_usable(&client.view, at)
    {
        client.answer(call, Answer::FsStat(figures));
        return Ok(());
    }
    if join(client, call) {
        return Ok(());
    }
    let target = client.view.target(node, None)?;
    client.send(Request::Statfs(Tstatfs { target }), Pending::Statfs(Figures(Some(call))));
    Ok(())
}

/// Asks for the figures on behalf of a program that begins to walk: it is going to ask for them in the first directory that it comes
/// to.
pub(crate) fn ask_ahead(client: &mut Client) {
    let is_known = client.view.figures.is_some_and(|(_, at)| is_usable(&client.view, at));
    if is_known || !client.view.mount.config.mode.takes_leases() || coming(client).is_some() {
        return;
    }
    if let Ok(target) = client.view.target(ROOT, None) {
        client.send(Request::Statfs(Tstatfs { target }), Pending::Statfs(Figures(None)));
    }
}

/// The request in progress for the figures.
fn coming(client: &Client) -> Option<Tag> {
    client.requests.find(|pending| matches!(pending, Pending::Statfs(Figures(None))))
}

/// Lets a call wait for figures in transit. Returns false if there are none.
fn join(client: &mut Client, call: CallId) -> bool {
    let Some(tag) = coming(client) else { return false };
    if !client.requests.sent_at(tag).is_some_and(|at| is_usable(&client.view, at)) {
        return false;
    }
    match client.requests.pending_mut(tag) {
        Some(pending) => {
            *pending = Pending::Statfs(Figures(Some(call)));
            true
        }
        None => false,
    }
}

/// Whether figures as of that time may be used. Programs that walk a tree ask in each directory what kind of file system it is, and nothing is
/// leased of it.
fn is_usable(view: &View, at: Time) -> bool {
    let is_recent = view.mount.config.mode.takes_leases() && view.mount.now < at + BELIEVED_FOR;
    let is_changed = view.names.is_changed_since(at) || view.files.unacknowledged() > 0;
    view.coherency().is_valid(Freshness::since(at)) || (is_recent && !is_changed)
}

pub(crate) fn finish(client: &mut Client, call: Option<CallId>, sent: Time, reply: Rstatfs) {
    client.view.figures = Some((reply.figures, sent));
    if let Some(call) = call {
        client.answer(call, Answer::FsStat(reply.figures));
    }
}

pub(crate) fn failed(client: &mut Client, call: Option<CallId>, errno: Errno) {
    if let Some(call) = call {
        client.fail(call, errno);
    }
}
