//! Mknod, mkdir, symlink, create, tmpfile: one Tput each.

use crate::answering::Answerer;
use crate::call::{Answer, CallId, Caller, OpenHow};
use crate::core::Client;
use crate::operation::{attributes, handles, list};
use crate::pending::{Making, Pending};
use crate::requests::Requests;
use crate::requests::connection::LinkState;
use crate::sending::Sender;
use crate::view::View;
use crate::view::files::Private;
use bytes::Bytes;
use wirefs_cache::{Freshness, TreeNodeId};
use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::target::{NOFD, Target};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, Request, SetStat, Stat, Time};

struct Wanted<'a> {
    parent: TreeNodeId,
    name: Option<&'a [u8]>,
    create: Create,
    mode: PutMode,
    set: SetStat,
    data: Bytes,
    open: Option<OpenHow>,
}

pub(crate) fn node(
    sender: &mut Sender<'_>,
    call: CallId,
    caller: Caller,
    parent: TreeNodeId,
    name: &[u8],
    (mode, umask, rdev): (u32, u32, u32),
) -> Result<(), Errno> {
    let kind = if mode & 0o170_000 == 0 { Some(Kind::File) } else { Kind::from_mode(mode) };
    let kind = kind.ok_or(Errno::Invalid)?;
    let create = Create { kind, mode: mode & 0o7777, rdev, cred: caller.cred(umask) };
    send(sender, call, plain(parent, name, create))
}

pub(crate) fn directory(
    sender: &mut Sender<'_>,
    call: CallId,
    caller: Caller,
    parent: TreeNodeId,
    name: &[u8],
    (mode, umask): (u32, u32),
) -> Result<(), Errno> {
    let cred = caller.cred(umask);
    let create = Create { kind: Kind::Directory, mode: mode & 0o7777, rdev: 0, cred };
    send(sender, call, plain(parent, name, create))
}

pub(crate) fn symlink(
    sender: &mut Sender<'_>,
    call: CallId,
    caller: Caller,
    parent: TreeNodeId,
    name: &[u8],
    target: &[u8],
) -> Result<(), Errno> {
    let create = Create { kind: Kind::Symlink, mode: 0o777, rdev: 0, cred: caller.cred(0) };
    send(sender, call, Wanted { data: Bytes::copy_from_slice(target), ..plain(parent, name, create) })
}

fn plain(parent: TreeNodeId, name: &[u8], create: Create) -> Wanted<'_> {
    Wanted {
        parent,
        name: Some(name),
        create,
        mode: PutMode::EXCLUSIVE,
        set: SetStat::default(),
        data: Bytes::new(),
        open: None,
    }
}

/// The fd that a Tput is to keep for an open of this kind.
pub(crate) fn open_mode(how: OpenHow) -> PutMode {
    PutMode::MORE.and_if(how.read, PutMode::READ).and_if(how.write, PutMode::WRITE)
}

pub(crate) fn file(
    sender: &mut Sender<'_>,
    call: CallId,
    caller: Caller,
    parent: TreeNodeId,
    name: &[u8],
    (mode, umask): (u32, u32),
    how: OpenHow,
) -> Result<(), Errno> {
    let create = Create { kind: Kind::File, mode: mode & 0o7777, rdev: 0, cred: caller.cred(umask) };
    // What is a copy is cut as such.
    let cuts = how.truncate && !sender.view.mount.config.mode.fetch.has_private_copies();
    let wanted = Wanted {
        mode: open_mode(how)
            .and_if(how.exclusive, PutMode::EXCLUSIVE)
            .and_if(cuts, PutMode::STAT)
            .and_if(cuts && caller.uid != 0, PutMode::KILL_PRIVILEGES),
        set: SetStat { size: cuts.then_some(0), ..SetStat::default() },
        open: Some(how),
        ..plain(parent, name, create)
    };
    send(sender, call, wanted)
}

pub(crate) fn nameless(
    sender: &mut Sender<'_>,
    call: CallId,
    caller: Caller,
    parent: TreeNodeId,
    (mode, umask): (u32, u32),
    how: OpenHow,
) -> Result<(), Errno> {
    let create = Create { kind: Kind::File, mode: mode & 0o7777, rdev: 0, cred: caller.cred(umask) };
    let mode = open_mode(how).and(PutMode::NAMELESS);
    send(sender, call, Wanted { name: None, mode, open: Some(how), ..plain(parent, b"", create) })
}

/// # Cost
/// 1 round trip.
fn send(sender: &mut Sender<'_>, call: CallId, wanted: Wanted<'_>) -> Result<(), Errno> {
    let path = match wanted.name {
        Some(name) => sender.view.entry_path(wanted.parent, name)?,
        None => sender.view.names.path(wanted.parent).ok_or(Errno::Stale)?,
    };
    let id = sender.view.names.node(wanted.parent).map(|dir| dir.stat.id);
    let put = Tput {
        target: Target { path, fd: NOFD, id },
        mode: wanted.mode.and(PutMode::CREATE).and_if(!wanted.data.is_empty(), PutMode::DATA),
        create: Some(wanted.create),
        set: wanted.set,
        offset: 0,
        data: Data(wanted.data),
    };
    let name = wanted.name.map(<[u8]>::to_vec);
    let making = Making { call, parent: wanted.parent, name, open: wanted.open, is_repeated: false };
    sender.send(Request::Put(put), Pending::Make(making));
    Ok(())
}

pub(crate) fn finish(client: &mut Client, making: Making, sent: Time, put: Rput) {
    let Making { call, parent, name, open, is_repeated } = making;
    let Some(stat) = put.stat else {
        return client.answerer().fail(call, Errno::Protocol);
    };
    let now = client.view.mount.now;
    let known = client.view.known(&stat, sent);
    let stat = Stat { leased: known.leased, ..stat };
    let node = client.sender().learn(&stat, known);
    let created = put.before == 0;
    let mut known_name = Freshness::since(sent);
    if let Some(name) = &name {
        known_name = client.view.known_own(parent, name, put.dir.as_ref(), sent);
        if !(is_repeated && is_replaced(&client.view, &client.requests, (parent, name), node)) {
            client.view.names.link(parent, name, node);
            client.view.directories.added(parent, name, &stat, known_name, now);
        } else {
            client.view.directories.invalidate(parent);
            client.view.invalidate_name(&mut client.outputs, parent, name.clone());
        }
        attributes::changed(&mut client.view, parent, put.dir.as_ref(), sent);
    }
    if created && stat.kind == Kind::Directory {
        list::store_made(&mut client.view, &client.requests, node, known);
    }
    let is_private =
        open.is_some() && name.is_some() && client.view.mount.config.mode.fetch.has_private_copies();
    if is_private && !created {
        // It was there, and all of it is to be fetched: the kernel opens it then.
        handles::give_back(&mut client.sender(), Some(stat.id), put.fd, true);
        client.view.names.evict_if_unused(node);
        return client.answerer().fail(call, Errno::Stale);
    }
    if !created {
        client.view.files.truncate_contents(node, stat.size);
    }
    attributes::took_effect(&mut client.view, &mut client.outputs, node, None, Some(&stat), sent);
    let entry = match client.view.entry(node, known_name) {
        Ok(entry) => entry,
        Err(errno) => return client.answerer().fail(call, errno),
    };
    let Some(how) = open else {
        return client.answerer().answer(call, Answer::Entry(entry));
    };
    client.view.names.hold(node);
    let handle = client.view.files.opened(node, how, put.fd);
    client.view.files.contents(node);
    let coherency = client.view.coherency();
    client.view.files.observe(node, stat.version, known, &coherency);
    if is_private {
        client.view.files.set_copy(handle, Private::default(), Some(&stat));
        if let Some(open) = client.view.files.open_mut(handle) {
            open.opened_by = name.map(|name| (parent, name));
        }
    }
    let uncached = is_private || client.view.mount.config.is_uncached(how);
    let pages = client.view.files.page_cache(node, uncached, sent, &coherency);
    client.answerer().answer(call, Answer::Created(entry, handle, pages));
}

/// Whether a reply over this connection has said that a name is another object than `node`.
fn is_replaced(
    view: &View,
    requests: &Requests,
    (parent, name): (TreeNodeId, &[u8]),
    node: TreeNodeId,
) -> bool {
    let LinkState::Up(since) = requests.link.state else { return false };
    let stands = view.names.child(parent, name).filter(|stands| *stands != node);
    stands.and_then(|stands| view.names.node(stands)).is_some_and(|stands| since <= stands.observed_at)
}

pub(crate) fn failed(answerer: &mut Answerer<'_>, making: Making, errno: Errno) {
    if errno == Errno::Exists {
        answerer.view.directories.invalidate(making.parent);
        if let Some(name) = making.name {
            // The kernel may have it that the name is absent.
            answerer.view.names.remove_negative(making.parent, &name);
            answerer.view.invalidate_name(answerer.outputs, making.parent, name);
        }
    }
    let errno = attributes::gone_above(answerer.view, answerer.outputs, making.parent, errno);
    answerer.fail(making.call, errno);
}
