//! Release: the last descriptor of an open file or directory is gone.

use crate::call::{Answer, CallId, Handle};
use crate::core::Client;
use crate::operation::{lock, session};
use crate::pending::{AfterPublishing, Closing, Pending};
use wirefs_cache::TreeNodeId;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::put::PutMode;
use wirefs_op::message::target::{Fd, NOFD, Target};
use wirefs_op::{Errno, FileId, Reply, Request, TreePath};

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
    lock::closes(client, node, handle);
    session::publish(client, node, handle, AfterPublishing::Nobody);
    forget(client, handle);
    client.answer(call, Answer::Done);
    Ok(())
}

/// Ends an open file here, and at the server.
pub(crate) fn forget(client: &mut Client, handle: Handle) {
    if let Some(open) = client.files.close(handle) {
        let node = open.node();
        let id = client.names.node(node).map(|known| known.stat.id);
        give_back(client, id, open.fd(), open.how.write);
        client.names.release(open.node());
        super::gone(client, open.node());
    }
}

/// The open file's fd is of an object that is not the file any more.
pub(crate) fn lose_fd(client: &mut Client, handle: Handle) {
    let Some(fd) = client.files.open(handle).map(|open| open.fd()) else { return };
    client.files.set_fd(handle, NOFD);
    give_back(client, None, fd, true);
}

/// Closes what was opened for a caller that is gone.
pub(crate) fn unwanted(client: &mut Client, call: CallId, handle: Handle) {
    let file = client.files.open(handle).map(|open| open.node());
    let directory = client.files.directory_mut(handle).map(|open| open.node);
    let closed = match (file, directory) {
        (Some(node), _) => self::file(client, call, node, handle, None),
        (None, Some(node)) => self::directory(client, call, node, handle),
        (None, None) => Ok(()),
    };
    debug_assert!(closed.is_ok(), "closing asks nobody");
}

/// Lets the server close the fd of an object; behind the session's changes when some of them may still need it.
pub(crate) fn give_back(client: &mut Client, id: Option<FileId>, fd: Fd, ordered: bool) {
    // One opened by means of another's fd shares it.
    if fd == NOFD || client.files.is_used(fd) {
        return;
    }
    let target = Target { path: TreePath::root(), fd, id };
    let mode = GetMode::NONE.and_if(ordered, GetMode::ORDERED);
    let get = Tget { target, mode, nmsgs: 1, offset: 0, count: 0 };
    client.send(Request::Get(get), Pending::Close(Closing { fd }));
}

/// Whether the request would have the server close an fd that an open file still goes by.
pub(crate) fn closes_used(client: &Client, request: &Request) -> bool {
    let closed = match request {
        Request::Get(get) if !get.mode.has(GetMode::MORE) => get.target.fd,
        Request::Put(put) if !put.mode.has(PutMode::MORE) => put.target.fd,
        _ => NOFD,
    };
    closed != NOFD && client.files.is_used(closed)
}

/// Where the server had forgotten the fd that an open file goes by, it has opened the file again by its path: that is its fd from now
/// on. To be called where nothing else takes the reply's fd.
pub(crate) fn fd_moved(client: &mut Client, request: &Request, reply: &Reply) {
    let (asked, fd) = match (request, reply) {
        (Request::Get(get), Reply::Get(got)) if get.mode.has(GetMode::MORE) => (&get.target, got.fd),
        (Request::Put(put), Reply::Put(done)) if put.mode.has(PutMode::MORE) => (&put.target, done.fd),
        _ => return,
    };
    if asked.fd == NOFD || fd == NOFD || fd == asked.fd {
        return;
    }
    let node = asked.id.and_then(|id| client.names.of_file(id));
    let handles: Vec<_> = node.into_iter().flat_map(|node| client.files.handles_of(node)).collect();
    for handle in handles {
        if client.files.open(handle).is_some_and(|open| open.fd() == asked.fd) {
            client.files.set_fd(handle, fd);
        }
    }
    give_back(client, asked.id, fd, true);
}

/// # Cost
/// 0 round trips.
pub(crate) fn directory(
    client: &mut Client,
    call: CallId,
    node: TreeNodeId,
    handle: Handle,
) -> Result<(), Errno> {
    if let Some(open) = client.files.close_directory(handle) {
        client.names.release(node);
        // Their callers were killed.
        for waiting in open.waiting {
            client.fail(waiting.call, Errno::Interrupted);
        }
    }
    client.answer(call, Answer::Done);
    Ok(())
}
