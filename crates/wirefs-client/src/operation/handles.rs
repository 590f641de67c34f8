//! Server handles: the fds by which requests name open files.

use crate::call::Handle;
use crate::pending::{Acquiring, Closing, Pending};
use crate::sending::Sender;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::put::PutMode;
use wirefs_op::message::target::{Fd, NOFD, Target};
use wirefs_op::{FileId, Reply, Request, TreePath};

/// The name is about to go: files opened without an fd get one first, so that they outlive it.
pub(crate) fn keep_alive(sender: &mut Sender<'_>, parent: TreeNodeId, name: &[u8]) {
    let Some(node) = sender.view.names.child(parent, name) else {
        return;
    };
    for handle in sender.view.files.handles_of(node).collect::<Vec<_>>() {
        sender.ask_fd(node, handle);
    }
}

/// Others are about to change or move an open file that has no fd: one is asked for, ahead of own changes, which may wait for those
/// others. False when it has no name to ask by.
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

/// Takes the fd of a file that is open for writing already. One that was asked for meanwhile, so that the file outlives its name, may be for
/// reading alone.
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

/// Takes the fd that was asked for a file, `id`, opened without one.
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

/// The open file's fd is of an object that is not the file any more.
pub(crate) fn lose_fd(sender: &mut Sender<'_>, handle: Handle) {
    let Some(fd) = sender.view.files.open(handle).map(|open| open.fd()) else { return };
    sender.view.files.set_fd(handle, NOFD);
    give_back(sender, None, fd, true);
}

/// Lets the server close the fd of an object; behind the session's changes when some of them may still need it.
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

/// Where the server had forgotten the fd that an open file goes by, it has opened the file again by its path: that is its fd from now
/// on. To be called where nothing else takes the reply's fd.
pub(crate) fn fd_moved(sender: &mut Sender<'_>, request: &Request, reply: &Reply) {
    let (asked, fd) = match (request, reply) {
        (Request::Get(get), Reply::Get(got)) if get.mode.has(GetMode::MORE) => (&get.target, got.fd),
        (Request::Put(put), Reply::Put(done)) if put.mode.has(PutMode::MORE) => (&put.target, done.fd),
        _ => return,
    };
    if asked.fd == NOFD || fd == NOFD || fd == asked.fd {
        return;
    }
    let node = asked.id.and_then(|id| sender.view.names.of_file(id));
    let handles: Vec<_> = node.into_iter().flat_map(|node| sender.view.files.handles_of(node)).collect();
    for handle in handles {
        if sender.view.files.open(handle).is_some_and(|open| open.fd() == asked.fd) {
            sender.view.files.set_fd(handle, fd);
        }
    }
    give_back(sender, asked.id, fd, true);
}
