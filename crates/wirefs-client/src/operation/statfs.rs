//! Statfs.

use crate::call::CallId;
use crate::core::Client;
use crate::operation::Pending;
use wirefs_cache::NodeId;
use wirefs_op::message::statfs::Tstatfs;
use wirefs_op::{Errno, Request};

/// # Cost
/// 1 round trip.
pub(crate) fn start(client: &mut Client, call: CallId, node: NodeId) -> Result<(), Errno> {
    let target = client.target(node, None)?;
    client.send(Request::Statfs(Tstatfs { target }), Pending::Statfs(call));
    Ok(())
}
