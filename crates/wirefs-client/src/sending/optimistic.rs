//! Optimistic execution of changes whose outcome is certain: the session is exclusive, all data that the change depends
//! on is leased, and every POSIX file system would do the same. In doubtful cases (ACLs, set-id bits, other owners,
//! several file systems, rare flags) the program waits for the server.

mod names;
mod open;
mod rights;

use super::Sender;
use crate::pending::{Confirming, Continuation, Pending};
use crate::steps::{OptimisticReply, Step};
use crate::view::View;
use crate::view::unconfirmed::Unconfirmed;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::put::{PutMode, Rput, Tput};
use wirefs_op::message::target::NOFD;
use wirefs_op::{Kind, Reply, Request, SetStat, SetTime, Stat, TreePath};

/// The version of an object that the server does not have yet. No object at the server has this version.
const MADE: u64 = 1 << 63;

/// The certain outcome of a change.
struct Outcome {
    reply: Reply,
    /// The affected nodes, except a new one.
    nodes: Vec<TreeNodeId>,
    names: Vec<(TreeNodeId, Vec<u8>)>,
    /// The new attributes of an object that the reply does not describe.
    besides: Option<(TreeNodeId, Stat)>,
    /// Inodes that it takes.
    inodes: u64,
}

/// Issues a change whose reply is certain, and leaves the reply as a step; hands any other request back. Of several in one input the
/// later ones wait for the server: what decides their outcome does not have the first yet.
pub(super) fn execute(
    sender: &mut Sender<'_>,
    request: Request,
    pending: Pending,
) -> Option<(Request, Pending)> {
    let (view, requests) = (&*sender.view, &*sender.requests);
    let is_possible = view.may_be_ahead(requests)
        && !sender.outputs.has_optimistic_reply()
        && !view.has_rivals(&request, made_in(&pending));
    let outcome = match (&request, &pending) {
        _ if !is_possible => None,
        (Request::Put(put), Pending::Make(making)) => names::make(view, requests, put, making.place()),
        (Request::Put(put), Pending::Setattr(setting)) => set(view, put, setting.node),
        (Request::Put(put), Pending::Open(opening)) => open::to_write(view, put, opening.node),
        (Request::Remove(remove), Pending::Remove(removing)) => {
            names::remove(view, removing.place(), remove.directory)
        }
        (Request::Rename(rename), Pending::Rename(renaming)) => {
            names::rename(view, renaming.places(), rename.flags)
        }
        (Request::Link(_), Pending::Link(linking)) => names::link(view, linking.node, linking.place()),
        _ => None,
    };
    let Some(outcome) = outcome else { return Some((request, pending)) };
    issue(sender, request, pending, outcome);
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

fn issue(sender: &mut Sender<'_>, request: Request, pending: Pending, outcome: Outcome) {
    let request = as_sent(request);
    let (what, path) = (request.name(), path_of(&request));
    let view = &mut *sender.view;
    let number =
        view.issue(sender.requests, sender.outputs, request, |number| Pending::Confirm(Confirming(number)));
    view.exclusive.unconfirmed.issued(0, outcome.inodes);
    for node in &outcome.nodes {
        view.note_known(sender.outputs, *node);
        view.goes_ahead(*node);
    }
    let Outcome { reply, nodes, names, besides, .. } = outcome;
    let unconfirmed = Unconfirmed { nodes, names, makes: None, opens: None, path, what };
    view.exclusive.unconfirmed.unconfirmed.insert(number, unconfirmed);
    if let Some(node) = pending.counted_node() {
        sender.change_begins(node, 0);
    }
    let reply = OptimisticReply { number, pending, reply, besides };
    sender.outputs.leave(Step::TakeOptimisticReply(Box::new(reply)));
}

/// Returns the request to send. It is stricter than the program's: if the outcome is not the expected one, it must fail
/// and change nothing.
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
fn set(view: &View, put: &Tput, node: TreeNodeId) -> Option<Outcome> {
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
    Some(Outcome { reply: Reply::Put(reply), nodes: vec![node], names: Vec::new(), besides: None, inodes: 0 })
}
