//! Statfs.

use crate::call::{Answer, CallId};
use crate::core::Client;
use crate::operation::Pending;
use wirefs_cache::{Known, NodeId};
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};
use wirefs_op::{Errno, Request, Time};

/// # Cost
/// 0 round trips while the figures may be believed, else 1.
pub(crate) fn start(client: &mut Client, call: CallId, node: NodeId) -> Result<(), Errno> {
    if let Some((figures, at)) = client.figures
        && client.trust().believes(Known::since(at))
    {
        client.answer(call, Answer::FsStat(figures));
        return Ok(());
    }
    let target = client.target(node, None)?;
    client.send(Request::Statfs(Tstatfs { target }), Pending::Statfs(call));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, call: CallId, sent: Time, reply: Rstatfs) {
    client.figures = Some((reply.figures, sent));
    client.answer(call, Answer::FsStat(reply.figures));
}
