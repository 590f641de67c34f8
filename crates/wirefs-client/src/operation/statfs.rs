//! Statfs.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::Pending;
use std::time::Duration;
use wirefs_cache::{Known, NodeId};
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};
use wirefs_op::{Errno, Request, Time};

/// How long the figures are believed in a mode that does not ask for what it knows, unless this mount changed something since.
const BELIEVED_FOR: Duration = Duration::from_secs(10);

/// # Cost
/// 0 round trips while the figures may be believed, else 1.
pub(crate) fn start(client: &mut Client, call: CallId, node: NodeId) -> Result<(), Errno> {
    if let Some((figures, at)) = client.figures
        && may_be_told(client, at)
    {
        client.answer(call, Answer::FsStat(figures));
        return Ok(());
    }
    let target = client.target(node, None)?;
    client.send(Request::Statfs(Tstatfs { target }), Pending::Statfs(call));
    Ok(())
}

/// Whether figures as of then will do. Programs that walk a tree ask in each directory what kind of file system it is, and nothing is
/// leased of it.
fn may_be_told(client: &Client, at: Time) -> bool {
    let is_recent = client.config.mode.takes_leases() && client.now < at + BELIEVED_FOR;
    let is_changed = client.names.is_changed_since(at) || client.files.unacknowledged() > 0;
    client.trust().believes(Known::since(at)) || (is_recent && !is_changed)
}

pub(crate) fn finish(client: &mut Client, call: CallId, sent: Time, reply: Rstatfs) {
    client.figures = Some((reply.figures, sent));
    client.answer(call, Answer::FsStat(reply.figures));
}
