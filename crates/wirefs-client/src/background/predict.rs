//! Prediction of replies that are certain: everything that a change depends on is leased, the session is exclusive, and the rules
//! are those of every POSIX file system. In doubtful cases (ACLs, set-id bits, other owners, several file systems, rare flags)
//! there is no prediction, and the program waits.

mod names;
mod open;
mod rights;

use crate::core::Client;
use crate::operation::{attributes, link, make, remove, rename};
use crate::pending::{Confirming, Continuation, Pending};
use crate::view::View;
use crate::view::unconfirmed::{Made, Unconfirmed};
use wirefs_cache::TreeNodeId;
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::NOFD;
use wirefs_op::{FileId, Kind, Reply, Request, SetStat, SetTime, Stat, TreePath};

/// The version of what the server does not have yet: no object's there has it.
const MADE: u64 = 1 << 63;

/// A reply that is predicted.
struct Predicted {
    reply: Reply,
    /// The affected nodes, except a new one.
    nodes: Vec<TreeNodeId>,
    names: Vec<(TreeNodeId, Vec<u8>)>,
    /// The new attributes of an object that the reply does not describe.
    besides: Option<(TreeNodeId, Stat)>,
    /// Inodes that it takes.
    inodes: u64,
}

/// Answers a change at once if its reply is certain; hands it back if not.
pub(crate) fn predict(client: &mut Client, request: Request, pending: Pending) -> Option<(Request, Pending)> {
    if !client.view.may_be_ahead(&client.requests) || client.view.has_rivals(&request, made_in(&pending)) {
        return Some((request, pending));
    }
    let predicted = match (&request, &pending) {
        (Request::Put(put), Pending::Make(making)) => {
            names::make(&client.view, &client.requests, put, making.place())
        }
        (Request::Put(put), Pending::Setattr(setting)) => set(&client.view, put, setting.node),
        (Request::Put(put), Pending::Open(opening)) => open::to_write(&client.view, put, opening.node),
        (Request::Remove(remove), Pending::Remove(removing)) => {
            names::remove(&client.view, removing.place(), remove.directory)
        }
        (Request::Rename(rename), Pending::Rename(renaming)) => {
            names::rename(&client.view, renaming.places(), rename.flags)
        }
        (Request::Link(_), Pending::Link(linking)) => {
            names::link(&client.view, linking.node, linking.place())
        }
        _ => None,
    };
    let Some(predicted) = predicted else { return Some((request, pending)) };
    go(client, request, pending, predicted);
    None
}

/// The directory in which a change makes a name.
fn made_in(pending: &Pending) -> Option<TreeNodeId> {
    match pending {
        Pending::Make(making) => making.place().map(|(dir, _)| dir),
        Pending::Link(linking) => Some(linking.place().0),
        Pending::Rename(renaming) => Some(renaming.replaced().0),
        _ => None,
    }
}

fn go(client: &mut Client, request: Request, pending: Pending, predicted: Predicted) {
    let request = as_sent(request);
    let (what, path) = (request.name(), path_of(&request));
    let number = client.view.issue(&mut client.requests, &mut client.outputs, request, |number| {
        Pending::Confirm(Confirming(number))
    });
    client.view.exclusive.unconfirmed.issued(0, predicted.inodes);
    for node in &predicted.nodes {
        client.view.note_known(&mut client.outputs, *node);
        client.view.goes_ahead(*node);
    }
    let unconfirmed =
        Unconfirmed { nodes: predicted.nodes, names: predicted.names, makes: None, opens: None, path, what };
    client.view.exclusive.unconfirmed.unconfirmed.insert(number, unconfirmed);
    if let Some(node) = pending.counted_node() {
        client.change_begins(node, 0);
    }
    let now = client.view.mount.now;
    client.view.exclusive.unconfirmed.is_predicted = true;
    match (pending, predicted.reply) {
        (Pending::Make(making), Reply::Put(put)) => {
            let made = put.stat.map(|stat| stat.id);
            make::finish(client, making, now, put);
            note_made(&mut client.view, number, made);
        }
        (Pending::Open(opening), Reply::Put(put)) => {
            let node = opening.node;
            crate::operation::open::finish_writing(client, opening, now, put);
            note_opened(&mut client.view, number, node);
        }
        (Pending::Setattr(setting), Reply::Put(put)) => attributes::was_set(client, setting, now, put),
        (Pending::Remove(removing), Reply::Remove(removed)) => remove::finish(client, removing, now, removed),
        (Pending::Rename(renaming), Reply::Rename(renamed)) => rename::finish(client, renaming, now, renamed),
        (Pending::Link(linking), Reply::Link(linked)) => link::finish(client, linking, now, linked),
        // INVARIANT: `predict` pairs each of these with its own reply.
        (pending, _) => client.request_failed(pending, wirefs_op::Errno::Protocol),
    }
    if let Some((node, stat)) = predicted.besides {
        attributes::changed(&mut client.view, node, Some(&stat), now);
    }
    client.view.exclusive.unconfirmed.is_predicted = false;
    client.view.send_waiting(&mut client.requests, &mut client.outputs);
}

/// The object is there from now on, and known by the number of its change.
fn note_made(view: &mut View, number: u64, made: Option<FileId>) {
    let Some(node) = made.and_then(|id| view.names.of_file(id)) else { return };
    view.goes_ahead(node);
    let handle = view.files.handles_of(node).next();
    if let Some(handle) = handle.and_then(|handle| view.files.open_mut(handle)) {
        handle.server.request();
    }
    if let Some(unconfirmed) = view.exclusive.unconfirmed.unconfirmed.get_mut(&number) {
        unconfirmed.makes = Some(Made { node, handle });
    }
}

/// The file is open from now on; the server's fd comes later.
fn note_opened(view: &mut View, number: u64, node: TreeNodeId) {
    let Some(handle) = view.files.handles_of(node).next_back() else { return };
    if let Some(open) = view.files.open_mut(handle) {
        open.server.request();
    }
    if let Some(unconfirmed) = view.exclusive.unconfirmed.unconfirmed.get_mut(&number) {
        unconfirmed.opens = Some((node, handle));
    }
}

/// The request of a predicted change: if the prediction is wrong, it must fail rather than do something else.
fn as_sent(request: Request) -> Request {
    match request {
        Request::Put(put) if put.mode.has(PutMode::CREATE) => {
            let mode =
                put.mode.and(PutMode::EXCLUSIVE).without(PutMode::STAT).without(PutMode::KILL_PRIVILEGES);
            Request::Put(Tput { mode, set: SetStat::default(), ..put })
        }
        other => other,
    }
}

fn path_of(request: &Request) -> TreePath {
    match request {
        Request::Put(put) => put.target.path.clone(),
        Request::Remove(remove) => remove.place.path.clone(),
        Request::Rename(rename) => rename.to.path.clone(),
        Request::Link(link) => link.to.path.clone(),
        _ => TreePath::root(),
    }
}

/// Chmod, utimes, truncate, and chown to the present owner.
fn set(view: &View, put: &Tput, node: TreeNodeId) -> Option<Predicted> {
    let known = view.names.node(node).filter(|_| view.is_fresh(node))?;
    let stat = view.exclusive.unconfirmed.shown(&known.stat);
    let now = view.time_after(stat.ctime);
    let set = put.set;
    let is_plain = matches!(stat.kind, Kind::File | Kind::Directory) && stat.mode & 0o7000 == 0;
    let keeps_owner = set.uid.is_none_or(|uid| uid == stat.uid) && set.gid.is_none_or(|gid| gid == stat.gid);
    let is_simple = set.mode.is_none_or(|mode| mode & !0o777 == 0);
    let may_cut =
        set.size.is_none() || (stat.kind == Kind::File && rights::may(&view.mount.attachment, &stat, 0o200));
    if !is_plain
        || !keeps_owner
        || !is_simple
        || !may_cut
        || !rights::owns(&view.mount.attachment, &stat)
        || !stat.without_xattrs
    {
        return None;
    }
    let time = |time: Option<SetTime>, old| match time {
        Some(SetTime::At(at)) => at,
        Some(SetTime::Now) => now,
        None => old,
    };
    let cut = set.size.is_some();
    let size = set.size.unwrap_or(stat.size);
    let after = Stat {
        mode: set.mode.unwrap_or(stat.mode),
        size,
        blocks: if cut { stat.blocks.min(size.div_ceil(512)) } else { stat.blocks },
        atime: time(set.atime, stat.atime),
        mtime: time(set.mtime, if cut { now } else { stat.mtime }),
        ctime: now,
        leased: true,
        ..stat
    };
    let reply = Rput { fd: NOFD, count: 0, offset: 0, before: stat.version, stat: Some(after), dir: None };
    Some(Predicted {
        reply: Reply::Put(reply),
        nodes: vec![node],
        names: Vec::new(),
        besides: None,
        inodes: 0,
    })
}
