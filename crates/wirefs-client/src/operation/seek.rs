//! Lseek to data and holes.

use crate::call::{CallId, Handle};
use crate::core::Client;
use crate::pending::{Pending, Seeking};
use crate::sending::Sender;
use crate::view::files::Drained;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::seek::Tseek;
use wirefs_op::{Errno, Request};

const SEEK_DATA: u32 = 3;
const SEEK_HOLE: u32 = 4;

/// # Cost
/// 1 round trip.
pub(crate) fn start(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    offset: u64,
    whence: u32,
) -> Result<(), Errno> {
    let hole = match whence {
        SEEK_DATA => false,
        SEEK_HOLE => true,
        _ => return Err(Errno::Invalid),
    };
    if let Some(answer) = client.view.files.seek_in_copy(handle, offset, whence) {
        client.answerer().answer(call, answer?);
        return Ok(());
    }
    if client.view.files.is_writing(node) {
        client.view.files.contents(node).drained.push(Drained::Seek { call, handle, offset, hole });
        return Ok(());
    }
    send(&mut client.sender(), call, node, handle, offset, hole)
}

pub(crate) fn send(
    sender: &mut Sender<'_>,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    offset: u64,
    hole: bool,
) -> Result<(), Errno> {
    let target = sender.view.target(node, Some(handle))?;
    sender.send(Request::Seek(Tseek { target, offset, hole }), Pending::Seek(Seeking(call)));
    Ok(())
}
