//! Fsync of files and directories, syncfs.

use crate::call::{Answer, CallId, Handle};
use crate::core::Client;
use crate::files::Drained;
use crate::operation::Pending;
use wirefs_cache::{NodeId, ROOT};
use wirefs_op::message::commit::{CommitScope, Rcommit, Tcommit};
use wirefs_op::{Errno, Request};

#[derive(Clone, Debug)]
pub(crate) struct Committing {
    pub(crate) call: CallId,
    node: NodeId,
    handle: Option<Handle>,
}

/// # Cost
/// 1 round trip, behind the writes that are on their way, and the server's disk.
pub(crate) fn file(
    client: &mut Client,
    call: CallId,
    node: NodeId,
    handle: Handle,
    data_only: bool,
) -> Result<(), Errno> {
    let scope = if data_only { CommitScope::Data } else { CommitScope::File };
    send(client, call, node, Some(handle), scope)
}

pub(crate) fn directory(
    client: &mut Client,
    call: CallId,
    node: NodeId,
    data_only: bool,
) -> Result<(), Errno> {
    let scope = if data_only { CommitScope::Data } else { CommitScope::File };
    send(client, call, node, None, scope)
}

pub(crate) fn filesystem(client: &mut Client, call: CallId, _node: NodeId) -> Result<(), Errno> {
    send(client, call, ROOT, None, CommitScope::Filesystem)
}

fn send(
    client: &mut Client,
    call: CallId,
    node: NodeId,
    handle: Option<Handle>,
    scope: CommitScope,
) -> Result<(), Errno> {
    let target = client.target(node, handle)?;
    let commit = Tcommit { target, scope };
    client.send(Request::Commit(commit), Pending::Commit(Committing { call, node, handle }));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, committing: Committing, committed: Rcommit) {
    let Committing { call, node, handle } = committing;
    if committed.boot != client.attachment.boot {
        return client.fail(call, Errno::Io);
    }
    let Some(handle) = handle else {
        return client.answer(call, Answer::Done);
    };
    if client.files.is_writing(node) {
        return client.files.contents(node).drained.push(Drained::Fsync { call, handle });
    }
    client.files.contents(node).uncommitted = false;
    if let Err(errno) = drained(client, call, handle) {
        client.fail(call, errno);
    }
}

/// The commit is done and all writes are answered: only an error of one of them is left to tell.
pub(crate) fn drained(client: &mut Client, call: CallId, handle: Handle) -> Result<(), Errno> {
    match client.files.take_error(handle) {
        Some(errno) => Err(errno),
        None => {
            client.answer(call, Answer::Done);
            Ok(())
        }
    }
}
