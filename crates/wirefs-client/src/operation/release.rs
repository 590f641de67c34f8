//! Release: the last descriptor of an open file or directory is gone.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Handle};
use crate::core::Client;
use crate::operation::{handles, lock, session};
use crate::view::publications::AfterPublishing;
use wirefs_cache::TreeNodeId;
use wirefs_op::Errno;

/// # Cost
/// 0 round trips: nobody waits for the server to close its fd.
pub(crate) fn file(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    flock_owner: Option<u64>,
) -> Result<(), Errno> {
    if let Some(owner) = flock_owner {
        lock::release_flock(client, node, handle, owner);
    }
    lock::release_unheard(client, node, handle);
    lock::closes(&mut client.sender(), node, handle);
    session::publish(&mut client.sender(), node, handle, AfterPublishing::Nobody);
    handles::forget(&mut client.sender(), handle);
    client.answerer().answer(call, Answer::Done);
    Ok(())
}

/// Closes what was opened for a caller that is gone.
pub(crate) fn unwanted(client: &mut Client, call: CallId, handle: Handle) {
    let file = client.view.files.open(handle).map(|open| open.node());
    let directory = client.view.files.directory_mut(handle).map(|open| open.node);
    let closed = match (file, directory) {
        (Some(node), _) => self::file(client, call, node, handle, None),
        (None, Some(node)) => self::directory(&mut client.answerer(), call, node, handle),
        (None, None) => Ok(()),
    };
    debug_assert!(closed.is_ok(), "closing asks nobody");
}

/// # Cost
/// 0 round trips.
pub(crate) fn directory(
    answerer: &mut Answerer<'_>,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
) -> Result<(), Errno> {
    if let Some(open) = answerer.view.files.close_directory(handle) {
        answerer.view.names.release(node);
        // Their callers were killed.
        for waiting in open.waiting {
            answerer.fail(waiting.call, Errno::Interrupted);
        }
    }
    answerer.answer(call, Answer::Done);
    Ok(())
}
