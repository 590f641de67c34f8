//! Flush: `close(2)` of one descriptor. Written data is at the server before close returns, or in the journal of an exclusive mount.

use crate::call::{Answer, CallId, Handle};
use crate::core::Client;
use crate::operation::{commit, lock, session};
use crate::view::files::Drained;
use crate::view::publications::AfterPublishing;
use wirefs_cache::TreeNodeId;
use wirefs_op::Errno;

/// # Cost
/// 0 round trips when nothing was written since the last, else until the last write is answered, and one more with the server's disk
/// where the mode wants that.
pub(crate) fn start(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    owner: u64,
) -> Result<(), Errno> {
    if session::publish(&mut client.sender(), node, handle, AfterPublishing::Flush { call, owner }) {
        return Ok(());
    }
    if client.view.files.is_writing(node) && !client.view.closes_ahead(&client.requests, node) {
        client.view.files.contents(node).drained.push(Drained::Flush { call, handle, owner });
        return Ok(());
    }
    drained(client, call, node, handle, owner)
}

pub(crate) fn drained(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    owner: u64,
) -> Result<(), Errno> {
    if client.view.files.contents(node).lockers.leaves(owner) {
        lock::release_all(client, node, handle, owner);
    }
    // Told and not taken: this may be the copy of a descriptor that a child closes when it executes a program, whose result
    // nobody looks at. (For the same reason `nfs_file_flush` leaves the error for fsync.)
    match client.view.files.error(handle) {
        Some(errno) => Err(errno),
        None if client.view.mount.config.mode.publish.is_committed()
            && client.view.files.contents(node).uncommitted =>
        {
            commit::closing(&mut client.sender(), call, node, handle)
        }
        None if client.view.files.is_writing(node) => {
            client.view.answer_journaled(&mut client.calls, &mut client.outputs, call, Answer::Done);
            Ok(())
        }
        None => {
            client.answerer().answer(call, Answer::Done);
            Ok(())
        }
    }
}
