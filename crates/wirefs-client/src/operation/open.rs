//! Open, and the server's fds behind open files.

use crate::call::{Answer, CallId, Caller, Handle, OpenHow};
use crate::core::Client;
use crate::operation::{Pending, attributes, make};
use wirefs_cache::{Fetch, NodeId};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, FileId, Request, SetStat, Time};

#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) call: CallId,
    pub(crate) node: NodeId,
    how: OpenHow,
}

impl Opening {
    /// Whether it changes the file.
    pub(crate) fn truncates(&self) -> bool {
        self.how.truncate
    }
}

/// An fd asked for on behalf of a file that was opened without one.
#[derive(Clone, Debug)]
pub(crate) struct Acquiring {
    handle: Handle,
    id: Option<FileId>,
    /// The file, where a recall is answered once it is there.
    recalled: Option<NodeId>,
}

/// Whether the kernel is to keep no pages for a file opened so: appended data would land in the wrong place in them.
pub(crate) fn is_uncached(client: &Client, how: OpenHow) -> bool {
    how.direct || how.append || client.config.mode.fetch == Fetch::Exact
}

/// # Cost
/// 0 round trips to read a file whose contents are known and valid; else 1, which brings the first data.
pub(crate) fn start(
    client: &mut Client,
    call: CallId,
    caller: Caller,
    node: NodeId,
    how: OpenHow,
) -> Result<(), Errno> {
    let uncached = is_uncached(client, how);
    let cached = !how.write && !uncached && client.is_fresh(node) && is_wholly_known(client, node);
    // A name that is about to go takes a file without an fd with it.
    if cached && !loses_name(client, node) {
        opened(client, call, node, how, NOFD, client.now);
        return Ok(());
    }
    let mut target = client.target(node, None)?;
    // Another open file's fd may have other rights; it serves when there is no path any more.
    if client.names.path(node).is_some() {
        target.fd = NOFD;
    }
    let request = if how.write || how.truncate {
        let mode = make::open_mode(how)
            .and_if(how.truncate, PutMode::STAT)
            .and_if(how.truncate && caller.uid != 0, PutMode::KILL_PRIVILEGES);
        let set = SetStat { size: how.truncate.then_some(0), ..SetStat::default() };
        Request::Put(Tput { target, mode, create: None, set, offset: 0, data: Data::default() })
    } else {
        let mode = GetMode::STAT
            .and(GetMode::MORE)
            .and_if(client.files.is_writing(node), GetMode::ORDERED)
            .and_if(!uncached, GetMode::DATA);
        let count = if uncached { 0 } else { DATA_BYTES_MAX as u32 };
        Request::Get(Tget { target, mode, nmsgs: 1, offset: 0, count })
    };
    if how.truncate {
        super::write::begins(client, node, 0);
    }
    client.send(request, Pending::Open(Opening { call, node, how }));
    Ok(())
}

/// Whether an own change that may remove a name of the node is under way.
fn loses_name(client: &Client, node: NodeId) -> bool {
    let links = client.names.links(node);
    client.requests.any(|pending| match pending {
        Pending::Remove(removing) => links.contains(&removing.place()),
        Pending::Rename(renaming) => links.contains(&renaming.replaced()),
        _ => false,
    })
}

fn is_wholly_known(client: &Client, node: NodeId) -> bool {
    let Some(size) = client.names.node(node).map(|known| known.stat.size) else {
        return false;
    };
    client.files.known(node).is_some_and(|contents| contents.ranges.known_to(0) >= size)
}

fn opened(client: &mut Client, call: CallId, node: NodeId, how: OpenHow, fd: Fd, sent: Time) {
    client.names.hold(node);
    let handle = client.files.opened(node, how, fd);
    let uncached = is_uncached(client, how);
    let trust = client.trust();
    let pages = client.files.page_cache(node, uncached, sent, &trust);
    client.answer(call, Answer::Opened(handle, pages));
}

pub(crate) fn finish_reading(client: &mut Client, opening: Opening, sent: Time, got: Rget, last: bool) {
    let Opening { call, node, how } = opening;
    if !last {
        return client.fail(call, Errno::Protocol);
    }
    client.files.contents(node);
    if let Some(stat) = got.stat.as_ref() {
        client.refresh(stat, sent);
    }
    let overtaken = client.names.node(node).is_none_or(|known| sent < known.changed_at);
    let is_known = got.stat.is_some_and(|stat| client.files.is_of(node, stat.version));
    if got.mode.has(GotMode::DATA) && !overtaken && is_known {
        client.files.remember_read(node, 0, &got.data.0);
    }
    opened(client, call, node, how, got.fd, sent);
}

pub(crate) fn finish_writing(client: &mut Client, opening: Opening, sent: Time, put: Rput) {
    let Opening { call, node, how } = opening;
    client.files.contents(node);
    if how.truncate {
        client.files.write_answered(node, 0);
        client.files.truncate_contents(node, 0);
        attributes::took_effect(client, node, Some(put.before), put.stat.as_ref(), sent);
    } else if let Some(stat) = put.stat {
        client.refresh(&stat, sent);
    }
    opened(client, call, node, how, put.fd, sent);
    if how.truncate {
        super::write::goes_on(client, node);
    }
}

pub(crate) fn failed(client: &mut Client, opening: Opening, errno: Errno) {
    let Opening { call, node, how } = opening;
    attributes::fail_gone(client, call, node, errno);
    if how.truncate {
        client.files.write_answered(node, 0);
        super::write::goes_on(client, node);
    }
}

/// The name is about to go: files opened without an fd get one first, so that they outlive it.
pub(crate) fn keep_alive(client: &mut Client, parent: NodeId, name: &[u8]) {
    let Some(node) = client.names.child(parent, name) else {
        return;
    };
    for handle in client.files.handles_of(node) {
        let Some(open) = client.files.open_mut(handle) else {
            continue;
        };
        if open.fd() != NOFD || open.fd_asked {
            continue;
        }
        open.fd_asked = true;
        let Ok(target) = client.target(node, Some(handle)) else {
            continue;
        };
        let mode = GetMode::MORE.and(GetMode::ORDERED);
        let id = target.id;
        let get = Tget { target, mode, nmsgs: 1, offset: 0, count: 0 };
        client.send(Request::Get(get), Pending::AcquireFd(Acquiring { handle, id, recalled: None }));
    }
}

/// Others are about to change or move an open file that has no fd: one is asked for, ahead of own changes, which may wait for those
/// others. False when it has no name to ask by.
pub(crate) fn outlive(client: &mut Client, node: NodeId) -> bool {
    let Some(handle) = client.files.handles_of(node).into_iter().next() else { return false };
    let Ok(target) = client.target(node, Some(handle)) else { return false };
    let id = target.id;
    let get = Tget { target, mode: GetMode::MORE, nmsgs: 1, offset: 0, count: 0 };
    client.send(Request::Get(get), Pending::AcquireFd(Acquiring { handle, id, recalled: Some(node) }));
    true
}

pub(crate) fn acquired(client: &mut Client, acquiring: Acquiring, fd: Fd) {
    take_fd(client, acquiring.handle, acquiring.id, fd);
    if let Some(node) = acquiring.recalled {
        client.fd_acquired(node);
    }
}

/// Takes the fd that was asked for a file, `id`, opened without one.
pub(crate) fn take_fd(client: &mut Client, handle: Handle, id: Option<FileId>, fd: Fd) {
    match client.files.open(handle) {
        Some(open) if open.fd() == NOFD => client.files.set_fd(handle, fd),
        _ => super::release::give_back(client, id, fd, true),
    }
}
