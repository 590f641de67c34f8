//! Server handles: the fds by which requests name open files.

use crate::call::Handle;
use crate::core::Client;
use crate::pending::{Acquiring, Closing, Pending};
use wirefs_cache::TreeNodeId;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::put::PutMode;
use wirefs_op::message::target::{Fd, NOFD, Target};
use wirefs_op::{FileId, Reply, Request, TreePath};

/// The name is about to go: files opened without an fd get one first, so that they outlive it.
pub(crate) fn keep_alive(client: &mut Client, parent: TreeNodeId, name: &[u8]) {
    let Some(node) = client.view.names.child(parent, name) else {
        return;
    };
    for handle in client.view.files.handles_of(node).collect::<Vec<_>>() {
        client.view.ask_fd(&mut client.requests, &mut client.outputs, node, handle);
    }
}

/// Others are about to change or move an open file that has no fd: one is asked for, ahead of own changes, which may wait for those
/// others. False when it has no name to ask by.
pub(crate) fn outlive(client: &mut Client, node: TreeNodeId) -> bool {
    let Some(handle) = client.view.files.handles_of(node).next() else { return false };
    let Ok(target) = client.view.target(node, Some(handle)) else { return false };
    let id = target.id;
    let get = Tget { target, mode: GetMode::MORE, nmsgs: 1, offset: 0, count: 0 };
    client.send(Request::Get(get), Pending::AcquireFd(Acquiring { handle, id, recalled: Some(node) }));
    true
}

pub(crate) fn acquired(client: &mut Client, acquiring: Acquiring, fd: Fd) {
    take_fd(client, acquiring.handle, acquiring.id, fd);
    if let Some(node) = acquiring.recalled {
        client.view.fd_acquired(&mut client.outputs, node);
    }
}

/// Takes the fd of a file that is open for writing already. One that was asked for meanwhile, so that the file outlives its name, may be for
/// reading alone.
pub(crate) fn take_written(client: &mut Client, (node, handle): (TreeNodeId, Handle), fd: Fd) {
    let id = client.view.names.node(node).map(|known| known.stat.id);
    let before = client.view.files.open(handle).map(|open| open.fd());
    match before {
        Some(before) if fd != NOFD => {
            client.view.files.set_fd(handle, fd);
            give_back(client, id, before, true);
        }
        Some(_) => {}
        None => give_back(client, id, fd, true),
    }
}

/// Takes the fd that was asked for a file, `id`, opened without one.
pub(crate) fn take_fd(client: &mut Client, handle: Handle, id: Option<FileId>, fd: Fd) {
    match client.view.files.open(handle) {
        Some(open) if open.fd() == NOFD => client.view.files.set_fd(handle, fd),
        _ => give_back(client, id, fd, true),
    }
}

/// Ends an open file here, and at the server.
pub(crate) fn forget(client: &mut Client, handle: Handle) {
    if let Some(open) = client.view.files.close(handle) {
        let node = open.node();
        let id = client.view.names.node(node).map(|known| known.stat.id);
        give_back(client, id, open.fd(), open.how.write);
        client.view.names.release(open.node());
        client.view.drop_if_gone(open.node());
    }
}

/// The open file's fd is of an object that is not the file any more.
pub(crate) fn lose_fd(client: &mut Client, handle: Handle) {
    let Some(fd) = client.view.files.open(handle).map(|open| open.fd()) else { return };
    client.view.files.set_fd(handle, NOFD);
    give_back(client, None, fd, true);
}

/// Lets the server close the fd of an object; behind the session's changes when some of them may still need it.
pub(crate) fn give_back(client: &mut Client, id: Option<FileId>, fd: Fd, ordered: bool) {
    // One opened by means of another's fd shares it.
    if fd == NOFD || client.view.files.is_used(fd) {
        return;
    }
    let target = Target { path: TreePath::root(), fd, id };
    let mode = GetMode::NONE.and_if(ordered, GetMode::ORDERED);
    let get = Tget { target, mode, nmsgs: 1, offset: 0, count: 0 };
    client.send(Request::Get(get), Pending::Close(Closing { fd }));
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
    let node = asked.id.and_then(|id| client.view.names.of_file(id));
    let handles: Vec<_> = node.into_iter().flat_map(|node| client.view.files.handles_of(node)).collect();
    for handle in handles {
        if client.view.files.open(handle).is_some_and(|open| open.fd() == asked.fd) {
            client.view.files.set_fd(handle, fd);
        }
    }
    give_back(client, asked.id, fd, true);
}
