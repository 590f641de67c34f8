//! Server handles: the fds by which requests name open files.

use crate::call::Handle;
use crate::pending::{Acquiring, Closing, Pending};
use crate::sending::Sender;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::put::PutMode;
use wirefs_op::message::target::{Fd, NOFD, Target};
use wirefs_op::{FileId, Reply, Request, TreePath};

/// Requests fds for files that were opened without one, before their name is removed, so that they stay readable.
pub(crate) fn keep_alive(sender: &mut Sender<'_>, parent: TreeNodeId, name: &[u8]) {
    let Some(node) = sender.view.names.child(parent, name) else {
        return;
    };
    for handle in sender.view.files.handles_of(node).collect::<Vec<_>>() {
        sender.ask_fd(node, handle);
    }
}

/// Requests an fd for an open file without one, before another client changes or moves it. The request is not ordered
/// after own changes, which may wait for that client. Returns false if the file has no name.
pub(crate) fn outlive(sender: &mut Sender<'_>, node: TreeNodeId) -> bool {
    let Some(handle) = sender.view.files.handles_of(node).next() else { return false };
    let Ok(target) = sender.view.target(node, Some(handle)) else { return false };
    let id = target.id;
    let get = Tget { target, mode: GetMode::MORE, nmsgs: 1, offset: 0, count: 0 };
    sender.send(Request::Get(get), Pending::AcquireFd(Acquiring { handle, id, recalled: Some(node) }));
    true
}

pub(crate) fn acquired(sender: &mut Sender<'_>, acquiring: Acquiring, fd: Fd) {
    take_fd(sender, acquiring.handle, acquiring.id, fd);
    if let Some(node) = acquiring.recalled {
        sender.view.fd_acquired(sender.outputs, node);
    }
}

/// Takes the fd of a file that is already open for writing. It replaces an fd that was requested meanwhile to keep the
/// file readable, since that may be read-only.
pub(crate) fn take_written(sender: &mut Sender<'_>, (node, handle): (TreeNodeId, Handle), fd: Fd) {
    let id = sender.view.names.node(node).map(|known| known.stat.id);
    let before = sender.view.files.open(handle).map(|open| open.fd());
    match before {
        Some(before) if fd != NOFD => {
            sender.view.files.set_fd(handle, fd);
            give_back(sender, id, before, true);
        }
        Some(_) => {}
        None => give_back(sender, id, fd, true),
    }
}

/// Takes the fd that was requested for the file `id`, which was opened without one.
pub(crate) fn take_fd(sender: &mut Sender<'_>, handle: Handle, id: Option<FileId>, fd: Fd) {
    match sender.view.files.open(handle) {
        Some(open) if open.fd() == NOFD => sender.view.files.set_fd(handle, fd),
        _ => give_back(sender, id, fd, true),
    }
}

/// Ends an open file here, and at the server.
pub(crate) fn forget(sender: &mut Sender<'_>, handle: Handle) {
    if let Some(open) = sender.view.files.close(handle) {
        let node = open.node();
        let id = sender.view.names.node(node).map(|known| known.stat.id);
        give_back(sender, id, open.fd(), open.how.write);
        sender.view.names.release(open.node());
        sender.view.drop_if_gone(open.node());
    }
}

/// Drops the fd of an open file, since it belongs to an object that is no longer the file.
pub(crate) fn lose_fd(sender: &mut Sender<'_>, handle: Handle) {
    let Some(fd) = sender.view.files.open(handle).map(|open| open.fd()) else { return };
    sender.view.files.set_fd(handle, NOFD);
    give_back(sender, None, fd, true);
}

/// Lets the server close the fd of an object. `ordered`: after the session's changes, some of which may still need it.
pub(crate) fn give_back(sender: &mut Sender<'_>, id: Option<FileId>, fd: Fd, ordered: bool) {
    // One opened by means of another's fd shares it.
    if fd == NOFD || sender.view.files.is_used(fd) {
        return;
    }
    let target = Target { path: TreePath::root(), fd, id };
    let mode = GetMode::NONE.and_if(ordered, GetMode::ORDERED);
    let get = Tget { target, mode, nmsgs: 1, offset: 0, count: 0 };
    sender.send(Request::Get(get), Pending::Close(Closing { fd }));
}

/// Takes the new fd of an open file if the server had forgotten the former one, and has opened the file again by its
/// path. For replies whose fd nothing else takes.
pub(crate) fn fd_moved(sender: &mut Sender<'_>, request: &Request, reply: &Reply) {
    let Some((asked, fd)) = fd_of(request, reply).filter(|(asked, fd)| asked.fd != NOFD && asked.fd != *fd)
    else {
        return;
    };
    let node = asked.id.and_then(|id| sender.view.names.of_file(id));
    let handles: Vec<_> = node.into_iter().flat_map(|node| sender.view.files.handles_of(node)).collect();
    for handle in handles {
        if sender.view.files.open(handle).is_some_and(|open| open.fd() == asked.fd) {
            sender.view.files.set_fd(handle, fd);
        }
    }
    give_back(sender, asked.id, fd, true);
}

/// The request was given up, and opens a file all the same: the server closes its fd.
pub(crate) fn opened_late(sender: &mut Sender<'_>, request: &Request, reply: &Reply) {
    if let Some((asked, fd)) = fd_of(request, reply).filter(|(asked, _)| asked.fd == NOFD) {
        give_back(sender, asked.id, fd, true);
    }
}

/// The target of a request that keeps its object open, and the fd that the reply has for it.
fn fd_of<'a>(request: &'a Request, reply: &Reply) -> Option<(&'a Target, Fd)> {
    let (asked, fd) = match (request, reply) {
        (Request::Get(get), Reply::Get(got)) if get.mode.has(GetMode::MORE) => (&get.target, got.fd),
        (Request::Put(put), Reply::Put(done)) if put.mode.has(PutMode::MORE) => (&put.target, done.fd),
        _ => return None,
    };
    (fd != NOFD).then_some((asked, fd))
}
