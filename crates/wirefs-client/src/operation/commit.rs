//! Fsync of files and directories, syncfs.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Handle};
use crate::core::Client;
use crate::kernel::CallsInProgress;
use crate::operation::{barrier, coalesce, session, unstable};
use crate::output::Outputs;
use crate::pending::{Committing, Pending};
use crate::requests::Requests;
use crate::sending::Sender;
use crate::view::View;
use crate::view::files::Drained;
use crate::view::publications::AfterPublishing;
use wirefs_cache::{ROOT, TreeNodeId};
use wirefs_op::message::commit::{CommitScope, Rcommit, Tcommit};
use wirefs_op::{Errno, Request};

/// # Cost
/// 1 round trip after the writes in progress, and the wait for the server's disk. For a rollback journal that is not
/// committed, only the wait for the local disk ([`crate::view::rollback`]).
pub(crate) fn file(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
    data_only: bool,
) -> Result<(), Errno> {
    if session::publish(&mut client.sender(), node, handle, AfterPublishing::Fsync { call }) {
        return Ok(());
    }
    if is_answered_here(&client.view, &client.requests) {
        return here(&mut client.view, &mut client.calls, &mut client.outputs, call, Some(handle));
    }
    if let Some(database) = client.view.orders_for(&client.requests, node) {
        barrier::send(&mut client.sender(), (node, Some(handle)), (node, database))?;
        return here(&mut client.view, &mut client.calls, &mut client.outputs, call, Some(handle));
    }
    let scope = if data_only { CommitScope::Data } else { CommitScope::File };
    send(&mut client.sender(), call, node, Some(handle), scope)?;
    client.sync_directory_of(node);
    Ok(())
}

/// Whether the journal suffices for a sync (`--fsync=journal`), and has all changes.
fn is_answered_here(view: &View, requests: &Requests) -> bool {
    view.mount.config.fsync_here && view.mount.config.journal && requests.is_numbered()
}

/// # Cost
/// The local disk. The server's is asked for within 5 s, so that the journal ends somewhere.
pub(crate) fn here(
    view: &mut View,
    calls: &mut CallsInProgress,
    outputs: &mut Outputs,
    call: CallId,
    handle: Option<Handle>,
) -> Result<(), Errno> {
    if let Some(errno) = handle.and_then(|handle| view.files.take_error(handle)) {
        return Err(errno);
    }
    view.answer_journaled(calls, outputs, call, Answer::Done);
    Ok(())
}

/// # Cost
/// 1 round trip; 0 where the directory was brought to the server's disk along with a file in it.
pub(crate) fn directory(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    data_only: bool,
) -> Result<(), Errno> {
    if is_answered_here(&client.view, &client.requests) {
        return here(&mut client.view, &mut client.calls, &mut client.outputs, call, None);
    }
    if client.sync_directory(node, call) {
        return Ok(());
    }
    let scope = if data_only { CommitScope::Data } else { CommitScope::File };
    send(&mut client.sender(), call, node, None, scope)
}

/// Brings a directory to the server's disk.
pub(crate) fn of_directory(sender: &mut Sender<'_>, node: TreeNodeId, number: u64) -> Result<(), Errno> {
    let commit = Tcommit { target: sender.view.target(node, None)?, scope: CommitScope::File };
    let committing = Committing { synced: Some(number), ..Committing::of(node) };
    sender.send(Request::Commit(commit), Pending::Commit(committing));
    Ok(())
}

pub(crate) fn filesystem(sender: &mut Sender<'_>, call: CallId, _node: TreeNodeId) -> Result<(), Errno> {
    send(sender, call, ROOT, None, CommitScope::Filesystem)
}

fn send(
    sender: &mut Sender<'_>,
    call: CallId,
    node: TreeNodeId,
    handle: Option<Handle>,
    scope: CommitScope,
) -> Result<(), Errno> {
    let target = sender.view.target(node, handle)?;
    let commit = Tcommit { target, scope };
    let is_all = scope == CommitScope::Filesystem;
    let below = sender.requests.is_numbered().then(|| sender.requests.next_number());
    let committing = Committing { call: Some(call), handle, below, is_all, ..Committing::of(node) };
    sender.send(Request::Commit(commit), Pending::Commit(committing));
    Ok(())
}

/// A close that waits for the server's disk.
pub(crate) fn closing(
    sender: &mut Sender<'_>,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
) -> Result<(), Errno> {
    let target = sender.view.target(node, Some(handle))?;
    let commit = Tcommit { target, scope: CommitScope::Data };
    let committing =
        Committing { call: Some(call), handle: Some(handle), closes: true, ..Committing::of(node) };
    sender.send(Request::Commit(commit), Pending::Commit(committing));
    Ok(())
}

/// Syncs a file to the server's disk in the background.
pub(crate) fn ahead(sender: &mut Sender<'_>, node: TreeNodeId) {
    let Ok(target) = sender.view.target(node, None) else { return };
    let commit = Tcommit { target, scope: CommitScope::Data };
    let committing = Committing::of(node);
    sender.send(Request::Commit(commit), Pending::Commit(committing));
}

pub(crate) fn finish(client: &mut Client, committing: Committing, order: u64, committed: Rcommit) {
    let Committing { call, node, handle, closes, below, is_all, synced } = committing;
    let is_same = committed.boot == client.view.mount.attachment.boot;
    if let Some(number) = synced {
        return client.answerer().directory_synced(number, if is_same { Ok(()) } else { Err(Errno::Io) });
    }
    if is_same && client.view.files.known(node).is_some() {
        unstable::committed(&mut client.view, node, order);
    }
    match below.filter(|_| is_same) {
        Some(below) if is_all => client.view.forget_below(&client.requests, &mut client.outputs, below),
        Some(below) => client.view.note_synced(&mut client.outputs, node, below),
        None => {}
    }
    let Some(call) = call else { return };
    if !is_same {
        return client.answerer().fail(call, Errno::Io);
    }
    let Some(handle) = handle else {
        return client.answerer().answer(call, Answer::Done);
    };
    if closes {
        client.view.files.contents(node).uncommitted = client.view.files.is_writing(node);
        let error = client.view.files.error(handle);
        return client.answerer().answer(call, error.map_or(Answer::Done, Answer::Fail));
    }
    if client.view.files.is_writing(node) {
        client.view.files.contents(node).drained.push(Drained::Fsync { call, handle });
        return coalesce::send(&mut client.sender(), node);
    }
    client.view.files.contents(node).uncommitted = false;
    if let Err(errno) = drained(&mut client.answerer(), call, handle) {
        client.answerer().fail(call, errno);
    }
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, committing: Committing, errno: Errno) {
    if let Some(call) = committing.call {
        answerer.fail(call, errno);
    }
    if let Some(number) = committing.synced {
        answerer.directory_synced(number, Err(errno));
    }
}

/// Ends an `fsync` once the commit and all writes are answered: reports an error of the writes, if the caller still
/// waits.
pub(crate) fn drained(answerer: &mut Answerer<'_>, call: CallId, handle: Handle) -> Result<(), Errno> {
    if !answerer.calls.is_waiting(call) {
        return Ok(());
    }
    match answerer.view.files.take_error(handle) {
        Some(errno) => Err(errno),
        None => {
            answerer.answer(call, Answer::Done);
            Ok(())
        }
    }
}
